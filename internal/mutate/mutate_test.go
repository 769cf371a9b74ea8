// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSample(t *testing.T) {
	s, err := load("./testdata/sample")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.build(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := s.measure(); err != nil {
		t.Fatal(err)
	}
	s.least = 200 * time.Millisecond // so that one that does not end takes less than a second
	all := s.mutants()
	got := map[result][]string{}
	for i, r := range s.tryAll(t.Output(), all, 1) {
		got[r] = append(got[r], all[i].key())
	}
	want := map[result][]string{
		killed: {
			"sample.go Limit: negate `n > most`",
			"sample.go Limit: drop `n = most`",
			"sample.go Limit: negate `n < 0`",
			"sample.go Rounds: negate `rounds != n`",
		},
		timedOut: {
			"sample.go Rounds: drop `rounds++`",
		},
		survived: {
			"sample.go Limit: boundary `n > most`", // equivalent
			"sample.go Limit: boundary `n < 0`",    // equivalent
			"sample.go Join: operand `a == \"\"`",
			"sample.go Join: negate `a == \"\"`",
		},
		// a + "+" does not have a difference: it is no mutant at all.
		unreached: {
			"sample.go Join: operand `b == \"\"`",
			"sample.go Join: negate `b == \"\"`",
			"sample.go Never: negate `n == 3`",
		},
	}
	for _, list := range []map[result][]string{got, want} {
		for _, keys := range list {
			slices.Sort(keys)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSurvivors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "survivors.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# a comment\n\nmatch/a.go F: negate `a == b` # equivalent: neither is ever nil\nmatch/sub/a.go G: drop `x = 1` # another package\n")
	got, err := readSurvivors(file, "match")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(survivors{"a.go F: negate `a == b`": "equivalent: neither is ever nil"}, got); diff != "" {
		t.Error(diff)
	}
	write("match/a.go F: negate `a == b`\n")
	if _, err := readSurvivors(file, "match"); err == nil {
		t.Error("a survivor without a reason is accepted")
	}
}

// TestReasons: a reason is given for a mutant that exists.
func TestReasons(t *testing.T) {
	all, err := readAll("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for line := range all {
		file := filepath.Join("../..", filepath.FromSlash(fileOf(line)))
		if exist[file] {
			continue
		}
		exist[file] = true
		s, err := read(file, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range s.mutants {
			exist[filepath.ToSlash(filepath.Dir(fileOf(line)))+"/"+m.key()] = true
		}
	}
	for line := range all {
		if !exist[line] {
			t.Errorf("no such mutant: %s", line)
		}
	}
}
