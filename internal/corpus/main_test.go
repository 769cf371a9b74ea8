// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFewest(t *testing.T) {
	inputs := []input{
		{name: "seed again", content: []byte("1"), reaches: []string{"a"}},
		{name: "long", content: []byte("123"), reaches: []string{"b", "c"}},
		{name: "short", content: []byte("12"), reaches: []string{"b", "c"}},
		{name: "part", content: []byte("1"), reaches: []string{"a", "c"}},
		{name: "more", content: []byte("1234"), reaches: []string{"c", "d"}},
	}
	for _, tt := range []struct {
		most int
		want []string
	}{
		{50, []string{"short", "more"}},
		{1, []string{"short"}},
		{0, nil},
	} {
		var got []string
		for _, in := range fewest(inputs, []string{"a"}, tt.most) {
			got = append(got, in.name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("at most %d: %q, want %q", tt.most, got, tt.want)
		}
	}
}

// Each fuzz target has inputs in its package's testdata/fuzz, or is among those that
// CONTRIBUTING.md says need none.
func TestEachTargetHasACorpus(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "whose seeds reach all that fuzzing has reached: ")
	list, _, _ = strings.Cut(list, ".\n")
	without := map[string]bool{}
	for _, name := range regexp.MustCompile(`Fuzz\w+`).FindAllString(list, -1) {
		without[name] = true
	}
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(source), -1) {
			kept, _ := os.ReadDir(filepath.Join(filepath.Dir(path), "testdata", "fuzz", found[1]))
			if needs := !without[found[1]]; needs != (len(kept) > 0) {
				t.Errorf("%s: %s has %d inputs; CONTRIBUTING.md says that it needs some: %v", path, found[1], len(kept), needs)
			}
			delete(without, found[1])
		}
		return err
	})
	if err != nil || len(without) > 0 {
		t.Errorf("there are no targets %v; %v", without, err)
	}
}
