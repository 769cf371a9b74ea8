// SPDX-License-Identifier: Apache-2.0

// Package contract tests that docs/contract.md is the contract: a row that is cited
// anywhere is there, and a row that is there is shown by a test.
package contract

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = "docs/contract.md"
	list = "\n## The tests of the rows\n"
)

var update = flag.Bool("update", false, "rewrite the list of tests in docs/contract.md")

// citation matches a row's number where it stands alone ("rows C3 to C5"), and where
// a test (TestE15Skip) or a file (E07-strict.txtar) is named after it.
var citation = regexp.MustCompile(`\b(?:Test|Fuzz)?([A-HJKO])0*([1-9][0-9]?[a-z]?)(?:\b|[A-Z])`)

// cited returns the rows that text cites, in its order.
func cited(text string) []string {
	var rows []string
	for _, match := range citation.FindAllStringSubmatch(text, -1) {
		rows = append(rows, match[1]+match[2])
	}
	return rows
}

// TestRowsExist prints each citation of a row that docs/contract.md does not have.
func TestRowsExist(t *testing.T) {
	rows := rowsOf(t)
	for _, file := range texts(t) {
		for i, line := range strings.Split(file+"\n"+read(t, file), "\n") {
			for _, row := range cited(line) {
				if !slices.Contains(rows, row) {
					t.Errorf("%s:%d cites %s, which is no row of %s", file, i, row, page)
				}
			}
		}
	}
}

// TestRowsAreShown compares the list of tests in docs/contract.md with the tests, the
// stories and the tables that cite the rows.
func TestRowsAreShown(t *testing.T) {
	shown := tests(t)
	var want strings.Builder
	for _, row := range rowsOf(t) {
		if len(shown[row]) == 0 {
			t.Errorf("%s: no test, story or matrix row cites %s", page, row)
		}
		fmt.Fprintf(&want, "| %s | %s |\n", row, shown[row])
	}
	text := read(t, page)
	end := strings.LastIndex(text, "|---|---|\n") + len("|---|---|\n")
	if end < strings.Index(text, list) || !strings.Contains(text, list) {
		t.Fatalf("%s does not end with the table of %q", page, strings.TrimSpace(list))
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, page), []byte(text[:end]+want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, now := strings.Split(text[end:], "\n"), strings.Split(want.String(), "\n")
	for _, line := range now {
		if !slices.Contains(got, line) {
			t.Errorf("%s lacks the line\n%s", page, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(now, line) {
			t.Errorf("%s has the line, which is no longer so,\n%s", page, line)
		}
	}
	if t.Failed() {
		t.Log("go test ./internal/contract -update writes the list")
	}
}

// TestDocumentsExist prints each document that a text of the repository names and
// that is not in it.
func TestDocumentsExist(t *testing.T) {
	document := regexp.MustCompile(`[\w./%-]*\w\.md\b`)
	made := []string{
		"docs/runbooks/NAME.md", // any
		"r.md",                  // by a test
	}
	for _, file := range texts(t) {
		for i, line := range strings.Split(read(t, file), "\n") {
			for _, name := range document.FindAllString(line, -1) {
				if strings.HasPrefix(name, "//") || strings.Contains(name, "%") || slices.Contains(made, name) {
					continue // an address, a pattern
				}
				if !exists(name) && !exists(path.Join(path.Dir(file), name)) {
					t.Errorf("%s:%d refers to %s, which is not in the repository", file, i+1, name)
				}
			}
		}
	}
}

// rowsOf returns the numbers of the rows of docs/contract.md, in its order.
func rowsOf(t *testing.T) []string {
	t.Helper()
	rules, _, _ := strings.Cut(read(t, page), list)
	var rows []string
	for _, match := range regexp.MustCompile(`(?m)^\| ([A-HJKO][1-9][0-9]?[a-z]?)(?: \+)? \|`).FindAllStringSubmatch(rules, -1) {
		if !slices.Contains(rows, match[1]) { // C10 has two lines
			rows = append(rows, match[1])
		}
	}
	if len(rows) < 100 {
		t.Fatalf("%s has %d rows: their form is not what this test reads", page, len(rows))
	}
	return rows
}

// texts returns the files that are written by hand, from the root of the repository.
func texts(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "fuzz", "rapid"}, name):
			return filepath.SkipDir
		case entry.Type().IsRegular() && (name == "Makefile" || slices.Contains([]string{".go", ".md", ".txtar", ".yaml", ".yml", ".py"}, filepath.Ext(name))):
			file, err = filepath.Rel(root, file)
			files = append(files, filepath.ToSlash(file))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exists(file string) bool {
	_, err := os.Stat(filepath.Join(root, file))
	return err == nil
}
