// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is a bug on purpose: a dispatcher with one edit of its source, with which
// a row of the matrix must fail.
type mutant struct {
	row, bug string
	file     string // from the root of the repository
	old, new string // text that stands in the file once, and what replaces it
	says     string // what the row's failure says, so that it fails for its own reason
}

var bite, update = os.Getenv("BITE") != "", flag.Bool("update", false, "rewrite BITE.md")

// TestBite builds every mutant and runs its row, which must fail as it is meant to
// ("make faults BITE=1"; with ROW one row).
func TestBite(t *testing.T) {
	if !bite {
		t.Skip(`runs by name: "make faults BITE=1"`)
	}
	var table strings.Builder
	for _, m := range mutants {
		if only != "" && !named(m.row) {
			continue
		}
		t.Run(m.row, func(t *testing.T) {
			finding := m.finding(t)
			progress("%-18s %-72s %s", m.row, m.bug, finding)
			table.WriteString(m.line())
		})
	}
	if *update && only == "" {
		if err := os.WriteFile(biteFile, []byte(biteHead+table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// finding plays the row against m and returns the first line of what it says.
func (m *mutant) finding(t *testing.T) string {
	t.Helper()
	row := exec.Command(os.Args[0], "-test.run=^TestFaults$", "-test.v", "-test.timeout=10m")
	row.Env = append(os.Environ(), "FAULTS=1", "BITE=", "ROW="+m.row, "DISPATCHER="+build(t, m, injected(m.row)))
	out, err := row.CombinedOutput()
	if err == nil {
		t.Fatalf("row %s does not notice: %s\n%s", m.row, m.bug, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, m.says) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("row %s fails without saying %q:\n%s", m.row, m.says, out)
	return ""
}

// build builds the dispatcher with edits, of which some may be nil, and returns its
// path.
func build(t *testing.T, edits ...*mutant) string {
	t.Helper()
	dir, root := t.TempDir(), repository(t)
	sources := map[string]string{} // by file
	for _, m := range edits {
		if m == nil {
			continue
		}
		m.mustFit(t)
		if sources[m.file] == "" {
			sources[m.file] = m.source(t)
		}
		sources[m.file] = strings.Replace(sources[m.file], m.old, m.new, 1)
	}
	edited := map[string]string{} // by path
	for file, source := range sources {
		edited[filepath.Join(root, file)] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": edited})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "dispatcher")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/dispatcher")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with edits: %v\n%s", err, out)
	}
	return binary
}

// injected is the fault that is injected into the dispatcher of a row, or nil.
func injected(id string) *mutant {
	for _, r := range matrix {
		for _, one := range r.played() {
			if one.id == id {
				return one.injected
			}
		}
	}
	return nil
}

// source returns the file that m edits.
func (m *mutant) source(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(t), m.file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestMutants: each row has a bug that it must notice, each bug still finds the text
// that it replaces, and BITE.md lists all of them and nothing else.
func TestMutants(t *testing.T) {
	table, err := os.ReadFile(biteFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(strings.TrimPrefix(string(table), biteHead)) {
		lines[line] = true
	}
	bugs := map[string]int{} // by row
	for _, m := range mutants {
		m.mustFit(t)
		if f := injected(m.row); f != nil {
			f.mustFit(t)
		}
		if !lines[m.line()] {
			t.Errorf("%s does not say that row %s notices: %s", biteFile, m.row, m.bug)
		}
		delete(lines, m.line())
		whole, _, _ := strings.Cut(m.row, "/")
		bugs[whole]++
	}
	for line := range lines {
		t.Errorf("%s has a line that is about no bug: %s", biteFile, line)
	}
	for _, r := range slices.Concat(matrix, attacks) {
		if bugs[r.id] == 0 {
			t.Errorf("row %s has no bug that it must notice", r.id)
		}
		delete(bugs, r.id)
	}
	for row := range bugs {
		t.Errorf("bugs of a row %s, which there is not", row)
	}
}

// mustFit: what m replaces stands in its file once.
func (m *mutant) mustFit(t *testing.T) {
	t.Helper()
	if n := strings.Count(m.source(t), m.old); n != 1 || m.old == m.new {
		t.Errorf("%s, %q: the text to be replaced stands %d times in %s:\n%s", m.row, m.bug, n, m.file, m.old)
	}
}

// line is the line of BITE.md that says that the row has noticed m.
func (m *mutant) line() string { return fmt.Sprintf("| %s | %s | %s |\n", m.row, m.bug, m.says) }

const (
	biteFile = "BITE.md"
	biteHead = `# What each row of the fault matrix notices

Each line is a dispatcher with one bug, built from the edit in ` + "`mutants_test.go`" + `, and what its row said of it when all were run last.
` + "`make faults BITE=1 UPDATE=1`" + ` runs them all and writes this page, ` + "`make faults BITE=1 ROW=F8`" + ` one of them.

| row | bug | the row fails and says |
|---|---|---|
`
)
