// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// tally is what is known of a run so far.
type tally struct {
	counts
	out    io.Writer
	output map[string]map[string]*strings.Builder // of tests under way, by package and test
	broken map[string]bool                        // packages with a failed test
}

// read counts the events of r and shows the result of each package, the output
// of what failed and how far fuzzing got. Lines that are no events pass through.
func read(r io.Reader, out io.Writer) (counts, error) {
	t := tally{out: out, output: map[string]map[string]*strings.Builder{}, broken: map[string]bool{}}
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		t.addLine(line)
		if errors.Is(err, io.EOF) {
			return t.counts, nil
		}
		if err != nil {
			return t.counts, fmt.Errorf("read the output of go test -json: %w", err)
		}
	}
}

func (t *tally) addLine(line []byte) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(t.out, "%s", line)
		return
	}
	switch {
	case e.Action == "output" || e.Action == "build-output":
		t.keep(e)
	case e.Test != "":
		t.endTest(e)
	default:
		t.endPackage(e)
	}
}

// keep shows a package's output at once, and keeps a test's until it ends, but
// for how far it has got.
func (t *tally) keep(e event) {
	if e.Test == "" && !isNoise(e.Output) || isProgress(e.Output) {
		fmt.Fprint(t.out, e.Output)
		return
	}
	tests := t.output[e.Package]
	if tests == nil {
		tests = map[string]*strings.Builder{}
		t.output[e.Package] = tests
	}
	if tests[e.Test] == nil {
		tests[e.Test] = &strings.Builder{}
	}
	tests[e.Test].WriteString(e.Output)
}

// isProgress reports whether a line is for whoever waits: of go test -fuzz, or of
// a test that takes long.
func isProgress(line string) bool {
	return strings.HasPrefix(line, "fuzz: elapsed") || strings.HasPrefix(line, "progress: ")
}

// isNoise reports whether a line about a package says nothing that its last
// line does not.
func isNoise(line string) bool {
	return line == "PASS\n" || line == "FAIL\n" || strings.Contains(line, "[no test files]")
}

func (t *tally) endTest(e event) {
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		t.tellWhy(e)
	case "fail":
		t.failed++
		t.broken[e.Package] = true
		t.show(e.Package, e.Test)
	default:
		return
	}
	delete(t.output[e.Package], e.Test)
}

// tellWhy shows the reason of a skip: what the test has said, without where.
func (t *tally) tellWhy(e event) {
	output := t.output[e.Package][e.Test]
	if output == nil {
		return
	}
	for line := range strings.Lines(output.String()) {
		if _, why, ok := strings.Cut(line, "_test.go:"); ok {
			_, why, _ = strings.Cut(why, ": ")
			fmt.Fprintf(t.out, "skipped: %s %s: %s\n", e.Package, e.Test, strings.TrimSpace(why))
		}
	}
}

// endPackage counts a package that failed without a failed test, in its build
// or by a panic, as one. It shows the tests that were under way.
func (t *tally) endPackage(e event) {
	if e.Action != "pass" && e.Action != "skip" && e.Action != "fail" {
		return
	}
	if e.Action == "fail" && !t.broken[e.Package] {
		t.failed++
		for test := range t.output[e.Package] {
			t.show(e.Package, test)
		}
	}
	delete(t.output, e.Package)
}

func (t *tally) show(pkg, test string) {
	if output := t.output[pkg][test]; output != nil {
		fmt.Fprint(t.out, output)
	}
}
