// SPDX-License-Identifier: Apache-2.0

package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWords reads the answers in the dispatcher's own stories: its words are a
// contract, and the checker must know all of them.
func TestWords(t *testing.T) {
	files, err := filepath.Glob("../../dispatcher/testdata/story/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	seen := map[kind]int{}
	for _, file := range files {
		c := recorded(t, file)
		said := c.testimony()
		if len(said.obscure) > 0 && !c.Allowed {
			t.Errorf("%s: not understood: %q", file, said.obscure)
		}
		agree(t, file, &c, deniedAnnotation, names(said.lines))
		for _, by := range announced {
			agree(t, file, &c, by.key, names(ofKind(said.rest, by.kind)))
		}
		for _, cl := range append(said.lines, said.rest...) {
			seen[cl.kind]++
		}
	}
	for k := saidDenied; k <= saidSkipped; k++ {
		if seen[k] == 0 {
			t.Errorf("no story has a claim of kind %d", k)
		}
	}
}

// agree: the annotation lists the webhooks that the message or warnings name.
func agree(t *testing.T, file string, c *Call, key string, said []string) {
	t.Helper()
	if listed := c.listed(key); !sameNames(listed, said) {
		t.Errorf("%s: %s lists %q, the answer names %q", file, key, listed, said)
	}
}

// recorded returns the answer of a story.
func recorded(t *testing.T, file string) Call {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(text), "-- want --\n")
	c := Call{Annotations: map[string]string{}}
	var lines []string
	for line := range strings.Lines(want) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "allowed":
			c.Allowed = strings.HasPrefix(rest, "true")
		case "message":
			lines = append(lines, rest)
		case "warning":
			c.Warnings = append(c.Warnings, rest)
		case "annotation":
			key, value, _ := strings.Cut(rest, ": ")
			c.Annotations[key] = value
		}
	}
	c.Message = strings.Join(lines, "\n")
	return c
}
