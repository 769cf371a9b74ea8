// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed runtime.go.txt
var runtime string

// subject is a package whose tests are tested: built once with all of its mutants,
// of which a run chooses one.
type subject struct {
	dir, path string // where it is, and its import path
	name      string
	files     []*source
	binary    string // of its tests
	tests     []test // that pass without a mutant
	failing   []string
	least     time.Duration // that tests get, beside what they take
}

// test is a test function and what it takes.
type test struct {
	name  string
	takes time.Duration
	// reaches are the ids of the mutants that it executes.
	reaches map[int]bool
}

// load finds the mutants of a package, given as go list takes it.
func load(pattern string) (*subject, error) {
	out, err := exec.Command("go", "list", "-json=Dir,ImportPath,Name,GoFiles", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, told(err))
	}
	var listed struct {
		Dir, ImportPath, Name string
		GoFiles               []string
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, fmt.Errorf("%s is not one package: %w", pattern, err)
	}
	s := &subject{dir: listed.Dir, path: listed.ImportPath, name: listed.Name, least: 10 * time.Second}
	next := 0
	for _, name := range listed.GoFiles {
		path := filepath.Join(s.dir, name)
		f, err := read(path, next)
		if err != nil {
			return nil, err
		}
		if f.text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		next += len(f.mutants)
		s.files = append(s.files, f)
	}
	return s, nil
}

func told(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// mutants are all mutants, in the order of the files.
func (s *subject) mutants() []*mutant {
	var all []*mutant
	for _, f := range s.files {
		all = append(all, f.mutants...)
	}
	return all
}

// build compiles the tests with all mutants in them. A mutant that does not compile
// (the sum of two strings) is dropped, and it tries again.
func (s *subject) build(dir string) error {
	all := s.mutants()
	count := 0
	for _, m := range all {
		count = max(count, m.id)
	}
	s.binary = filepath.Join(dir, "mutants.test")
	for {
		replace := map[string]string{}
		write := func(path string, text []byte) error {
			at := filepath.Join(dir, "mutated_"+filepath.Base(path))
			replace[path] = at
			return os.WriteFile(at, text, 0o600)
		}
		helpers := strings.NewReplacer("PACKAGE", s.name, "COUNT", strconv.Itoa(count)).Replace(runtime)
		if err := write(filepath.Join(s.dir, "mutant_runtime.go"), []byte(helpers)); err != nil {
			return err
		}
		for _, f := range s.files {
			if err := write(f.path, f.instrumented()); err != nil {
				return err
			}
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
			return err
		}
		build := exec.Command("go", "test", "-c", "-gcflags="+s.path+"=-e", "-overlay", filepath.Join(dir, "overlay.json"), "-o", s.binary, s.path)
		out, err := build.CombinedOutput()
		if err == nil {
			return nil
		}
		if !s.dropUnbuilt(string(out)) {
			return fmt.Errorf("build the tests of %s with mutants: %w\n%s", s.path, err, out)
		}
	}
}

// dropUnbuilt drops the mutants of lines that do not compile: those of arithmetic
// first. It reports whether there were any.
func (s *subject) dropUnbuilt(output string) bool {
	dropped := false
	for _, f := range s.files {
		bad := map[int]bool{}
		where := regexp.MustCompile(`(?m)/mutated_` + regexp.QuoteMeta(filepath.Base(f.path)) + `:(\d+):`)
		for _, found := range where.FindAllStringSubmatch(output, -1) {
			line, _ := strconv.Atoi(found[1]) // digits
			bad[line] = true
		}
		sums := map[int]bool{}
		for _, m := range f.mutants {
			sums[m.line] = sums[m.line] || m.kind == arithmetic
		}
		before := len(f.mutants)
		f.mutants = slices.DeleteFunc(f.mutants, func(m *mutant) bool {
			return bad[m.line] && (m.kind == arithmetic || !sums[m.line])
		})
		dropped = dropped || len(f.mutants) < before
	}
	return dropped
}

// measure runs each test alone and notes what it takes and which mutants it
// reaches. Tests that fail without a mutant are left out.
func (s *subject) measure() error {
	list := exec.Command(s.binary, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", s.path, told(err))
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") && !strings.HasPrefix(name, "Example") {
			continue
		}
		reached := s.binary + ".reached"
		_ = os.Remove(reached) // there need not be one
		begin := time.Now()
		if s.run([]string{name}, 10*time.Minute, "MUTANTS_REACHED="+reached) != survived {
			s.failing = append(s.failing, name)
			continue
		}
		t := test{name: name, takes: time.Since(begin), reaches: map[int]bool{}}
		ids, err := os.ReadFile(reached)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for lines := bufio.NewScanner(bytes.NewReader(ids)); lines.Scan(); {
			id, err := strconv.Atoi(lines.Text())
			if err != nil {
				return fmt.Errorf("%s: %w", reached, err)
			}
			t.reaches[id] = true
		}
		s.tests = append(s.tests, t)
	}
	slices.SortStableFunc(s.tests, func(a, b test) int { return cmp.Compare(a.takes, b.takes) })
	return nil
}

// result is what became of a mutant.
type result string

// What may become of a mutant.
const (
	killed    result = "killed"
	timedOut  result = "timed out" // a test did not end, and no test failed
	survived  result = "survived"
	unreached result = "unreached" // no test executes it
)

// run runs tests in one process and returns what becomes of a mutant by that.
func (s *subject) run(names []string, within time.Duration, env ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), within+10*time.Second) // where the test's own timeout hangs, too
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout", within.String())
	// What fails because of a mutant is not kept as an example for later runs.
	env = append(env, "RAPID_NOFAILFILE=true")
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, append(os.Environ(), env...), time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return survived
	case ctx.Err() != nil, bytes.Contains(out, []byte("panic: test timed out after ")):
		return timedOut
	}
	return killed
}

// runTwice is run, once more with twice the time where that is over: the machine may
// just have been busy.
func (s *subject) runTwice(names []string, within time.Duration, env ...string) result {
	r := s.run(names, within, env...)
	if r == timedOut {
		r = s.run(names, 2*within, env...)
	}
	return r
}

// try runs the tests that reach m, the quick ones first.
func (s *subject) try(m *mutant) result {
	const quick = 300 * time.Millisecond // of which many fit into one process
	var batch []string
	var takes time.Duration
	flush := func() result {
		if len(batch) == 0 {
			return survived
		}
		r := s.runTwice(batch, s.least+5*takes, "MUTANT="+strconv.Itoa(m.id))
		batch, takes = nil, 0
		return r
	}
	reached := false
	for _, t := range s.tests {
		if !t.reaches[m.id] {
			continue
		}
		reached = true
		if t.takes > quick || takes > 3*quick {
			if r := flush(); r != survived {
				return r
			}
		}
		batch, takes = append(batch, t.name), takes+t.takes
	}
	if !reached {
		return unreached
	}
	return flush()
}
