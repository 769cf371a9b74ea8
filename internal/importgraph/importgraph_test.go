// SPDX-License-Identifier: Apache-2.0

package importgraph

import (
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestWhoImportsWhom(t *testing.T) {
	known := packages()
	for name, imports := range imported(t) {
		allowed, ok := known[name]
		if !ok {
			t.Errorf("package %s is unknown: add it to packages() in internal/importgraph/rules_test.go, with what it may import", name)
			continue
		}
		checkImports(t, name, imports, allowed)
		checkUsed(t, name, imports, allowed)
		delete(known, name)
	}
	for name := range known {
		t.Errorf("package %s is in packages() in internal/importgraph/rules_test.go, but not in the module", name)
	}
}

func checkImports(t *testing.T, name string, imports, allowed []string) {
	for _, path := range imports {
		if target, ok := strings.CutPrefix(path, module+"/"); ok {
			if !slices.Contains(allowed, target) && !slices.Contains(allowed, anything) {
				t.Errorf("%s imports %s, and may import only %q (packages() in internal/importgraph/rules_test.go)", name, target, allowed)
			}
		} else if isForeign(path) {
			checkForeign(t, name, path)
		}
	}
}

// checkUsed reports what a package may import and does not: a table that says more
// than what is so tells nobody how the house is built.
func checkUsed(t *testing.T, name string, imports, allowed []string) {
	for _, target := range allowed {
		if target != anything && !slices.Contains(imports, module+"/"+target) {
			t.Errorf("%s may import %s, and does not: take that from packages() in internal/importgraph/rules_test.go", name, target)
		}
	}
}

// TestForeignHomes: whoever may import a foreign module does.
func TestForeignHomes(t *testing.T) {
	all := imported(t)
	for prefix, users := range modules() {
		for _, name := range users {
			if name != anything && !slices.ContainsFunc(all[name], func(path string) bool { return home(path) == prefix }) {
				t.Errorf("%s may import %s, and does not: take that from modules() in internal/importgraph/rules_test.go", name, prefix)
			}
		}
	}
}

func checkForeign(t *testing.T, name, path string) {
	longest := home(path)
	switch users := modules()[longest]; {
	case longest == "":
		t.Errorf("%s imports %s, of which modules() in internal/importgraph/rules_test.go knows nothing: add it there, with its only home", name, path)
	case !slices.Contains(users, name) && !slices.Contains(users, anything):
		t.Errorf("%s imports %s, which only %q may (modules() in internal/importgraph/rules_test.go)", name, path, users)
	}
}

// home returns the longest path in modules() that a foreign package is below.
func home(path string) string {
	longest := ""
	for prefix := range modules() {
		if within(path, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return longest
}

// imported returns what each package of the module imports outside its tests.
// It reads the files itself: of what a go list reads, the cache of go test would
// know nothing, and hand out old results.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if isOutside(dir, entry.Name()) {
			return fs.SkipDir
		}
		p, err := build.ImportDir(dir, 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			return nil
		}
		if err != nil || len(p.GoFiles) == 0 {
			return err
		}
		name, err := filepath.Rel(root, dir)
		found[filepath.ToSlash(name)] = p.Imports
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isOutside reports whether a directory is not part of the module.
func isOutside(dir, name string) bool {
	if dir == root {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// isForeign reports whether a package is outside the module and the standard
// library, whose paths have no dot in the first element.
func isForeign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
