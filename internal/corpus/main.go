// SPDX-License-Identifier: Apache-2.0

// Command corpus keeps what fuzzing has found: of the inputs in Go's cache it copies
// to testdata/fuzz those that reach code which neither a seed nor an input there
// reaches, the fewest that do.
//
//	corpus ./codec FuzzDecode
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of what is kept of one target.
const (
	mostInputs = 50
	mostBytes  = 4 << 10 // of an input
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: corpus PACKAGE TARGET")
		os.Exit(2)
	}
	if err := keep(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// input is a file of a corpus, and the blocks of the package that it reaches.
type input struct {
	name    string
	content []byte
	reaches []string
}

// target is a fuzz target whose test binary measures coverage.
type target struct {
	name, dir, kept, binary, profile string
}

func keep(out io.Writer, pkg, name string) error {
	listed, err := exec.Command("go", "list", "-f", "{{.Dir}}\n{{.ImportPath}}", pkg).Output()
	if err != nil {
		return fmt.Errorf("list %s: %w", pkg, err)
	}
	dir, path, _ := strings.Cut(strings.TrimSpace(string(listed)), "\n")
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("find the cache: %w", err)
	}
	temp, err := os.MkdirTemp("", "corpus-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	t := &target{name: name, dir: dir, binary: filepath.Join(temp, "test"), profile: filepath.Join(temp, "profile")}
	if out, err := exec.Command("go", "test", "-c", "-cover", "-o", t.binary, path).CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", path, err, out)
	}
	t.kept = filepath.Join(dir, "testdata", "fuzz", name)
	have, err := read(t.kept)
	if err != nil {
		return err
	}
	found, err := read(filepath.Join(strings.TrimSpace(string(cache)), "fuzz", filepath.FromSlash(path), name))
	if err != nil {
		return err
	}
	chosen, err := t.choose(found, mostInputs-len(have))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s: %d inputs, and %d of the %d that were found\n", path, name, len(have), len(chosen), len(found))
	return t.write(chosen)
}

// read returns the inputs in a directory, those that are small enough.
func read(dir string) ([]input, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var inputs []input
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		if len(content) <= mostBytes {
			inputs = append(inputs, input{name: f.Name(), content: content})
		}
	}
	return inputs, nil
}

// choose returns, of the inputs, those that together reach what the target does not
// reach as it is.
func (t *target) choose(inputs []input, most int) ([]input, error) {
	before, err := t.reached("")
	if err != nil {
		return nil, err
	}
	for i := range inputs {
		if inputs[i].reaches, err = t.reachedWith(inputs[i]); err != nil {
			return nil, err
		}
	}
	return fewest(inputs, before, most), nil
}

// fewest returns, of the inputs, those that together reach what all of them reach
// beyond some blocks, at most so many: the one that adds most first, and of equal
// ones the smallest.
func fewest(inputs []input, before []string, most int) []input {
	reached := map[string]bool{}
	for _, block := range before {
		reached[block] = true
	}
	adds := func(in input) int {
		n := 0
		for _, block := range in.reaches {
			if !reached[block] {
				n++
			}
		}
		return n
	}
	var chosen []input
	for len(inputs) > 0 && len(chosen) < most {
		best := slices.MaxFunc(inputs, func(a, b input) int {
			return cmp.Or(cmp.Compare(adds(a), adds(b)), cmp.Compare(len(b.content), len(a.content)), cmp.Compare(b.name, a.name))
		})
		if adds(best) == 0 {
			break
		}
		for _, block := range best.reaches {
			reached[block] = true
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// reachedWith returns the blocks that the target reaches with an input that is not
// kept yet.
func (t *target) reachedWith(in input) ([]string, error) {
	path := filepath.Join(t.kept, in.name)
	if _, err := os.Stat(path); err == nil {
		return nil, nil // it is kept
	}
	if err := t.write([]input{in}); err != nil {
		return nil, err
	}
	blocks, err := t.reached("/^" + in.name + "$")
	return blocks, errors.Join(err, os.Remove(path))
}

// reached returns the blocks that the target reaches with some of its inputs.
func (t *target) reached(inputs string) ([]string, error) {
	run := exec.Command(t.binary, "-test.run", "^"+t.name+"$"+inputs, "-test.coverprofile", t.profile)
	run.Dir = t.dir
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s fails: %w\n%s", t.name, err, out)
	}
	profile, err := os.ReadFile(t.profile)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for lines := bufio.NewScanner(bytes.NewReader(profile)); lines.Scan(); {
		// name.go:line.column,line.column statements count
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[2] != "0" {
			blocks = append(blocks, fields[0])
		}
	}
	return blocks, nil
}

func (t *target) write(inputs []input) error {
	for _, in := range inputs {
		if err := os.MkdirAll(t.kept, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.kept, in.name), in.content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
