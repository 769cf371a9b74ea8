// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// printed is a figure that a test prints.
type printed struct {
	test  test
	lines string // the pattern of a line, with a group for each number that matters
	read  func(lines [][]float64) reading
}

// test is a Go test that is run for what it prints.
type test struct {
	dir, pkg, name string   // dir has a go.mod
	env            []string // of the process
	args           []string // of the test's own flags
}

// measure uses what a test printed that failed, and says that it did.
func (p printed) measure(l *lab) (reading, error) {
	text, failure := l.printed(&p.test)
	got, err := p.find(text)
	if err != nil {
		return reading{}, cmp.Or(failure, err)
	}
	if failure != nil {
		got.remark = failure.Error()
	}
	return got, nil
}

// find reads the figure in what the test has printed.
func (p printed) find(text string) (reading, error) {
	lines := numbers(text, regexp.MustCompile(p.lines))
	if len(lines) == 0 {
		return reading{}, fmt.Errorf("%s does not print it", p.test.name)
	}
	return p.read(lines), nil
}

// numbers returns the numbers of each line that the pattern finds.
func numbers(text string, pattern *regexp.Regexp) [][]float64 {
	var lines [][]float64
	for _, groups := range pattern.FindAllStringSubmatch(text, -1) {
		var line []float64
		for _, g := range groups[1:] {
			if v, err := parse(g); err == nil {
				line = append(line, v)
			}
		}
		if len(line) == len(groups)-1 {
			lines = append(lines, line)
		}
	}
	return lines
}

// parse reads a number, or a duration, which it returns in milliseconds.
func parse(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	d, err := time.ParseDuration(text)
	return milliseconds(d), err
}

// transpose returns the nth numbers of all lines.
func transpose(lines [][]float64, n int) []float64 {
	list := make([]float64, len(lines))
	for i, line := range lines {
		list[i] = line[n]
	}
	return list
}

func (l *lab) printed(t *test) (string, error) {
	return remember(l, t.name+" in ./"+filepath.Join(t.dir, t.pkg), func() (string, error) {
		args := append([]string{"test", "-run", "^" + t.name + "$", "-count=1", "-v", "-timeout=20m", "./" + t.pkg}, t.args...)
		cmd := exec.CommandContext(l.ctx, "go", args...)
		cmd.Dir = filepath.Join(l.root, t.dir)
		cmd.Env = append(os.Environ(), t.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", t.name, err, complaint(out))
		}
		return string(out), err
	})
}

// complaint is the first one of a test that failed.
func complaint(out []byte) string {
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte("_test.go:")) {
			return string(bytes.TrimSpace(line))
		}
	}
	return lastLine(out)
}
