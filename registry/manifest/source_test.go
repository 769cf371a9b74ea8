// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a manifest may take is bounded.
func TestLargeManifests(t *testing.T) {
	t.Run("E13 file that is too large", func(t *testing.T) {
		h := newHome(t)
		h.put("large.json", "")
		h.must(os.Truncate(filepath.Join(h.dir, "large.json"), 64<<20+1))
		h.refused("larger than 67108864 bytes")
	})
	t.Run("E7 document that is too large with its aliases", func(t *testing.T) {
		h := newHome(t)
		for aliases, reason := range map[int]string{17: "larger than 16777216 bytes after its aliases", 14: "apiVersion and kind are required"} {
			h.put("aliases.yaml", fmt.Sprintf("a: &a %s\nb: [%s]\n", strings.Repeat("x", 1<<20), strings.TrimSuffix(strings.Repeat("*a, ", aliases), ", ")))
			h.refused(reason)
		}
	})
}

// Whatever could mean something else has another name: what files hold, what they are
// called and where one ends.
func TestHashOfFiles(t *testing.T) {
	known := map[string]string{}
	for name, files := range map[string]map[string]string{
		"two clusters":       {"a.yaml": "a", "b.yaml": "b"},
		"in one file":        {"a.yaml": "a---b"},
		"the other way":      {"a.yaml": "b", "b.yaml": "a"},
		"another file":       {"a.yaml": "a", "c.yaml": "b"},
		"with an empty file": {"a.yaml": "a", "b.yaml": "b", "c.yaml": ""},
		"the end is here":    {"a.yaml": "a#", "b.yaml": "\n---b#b.yaml\n"},
		"and here":           {"a.yaml": "a#b.yaml\n---b#", "b.yaml": "\n"},
	} {
		h := newHome(t)
		for file, clusters := range files {
			h.put(file, strings.NewReplacer("---", "---\n", "b.yaml", "b.yaml", "a", named("east"), "b", named("west")).Replace(clusters))
		}
		hash := h.good().Hash
		if other, same := known[hash]; same {
			t.Errorf("%s and %s have one name", name, other)
		}
		known[hash] = name
	}
}
