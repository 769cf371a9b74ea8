// SPDX-License-Identifier: Apache-2.0

package importgraph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unwatched are the packages that start goroutines and whose tests cannot look for
// those that stay, with the reason.
func unwatched() map[string]string {
	return map[string]string{
		"command":        "its tests run it in processes of its own, which end",
		"loadtest/bench": "its tests run it in processes of its own, which end",
		"loadtest/floor": "it has no tests: it is what others are measured against",
		"loadtest/plain": "it has no tests: it is what others are measured against",
		"loadtest/zone":  "it has no tests: those that use it look",
	}
}

// TestGoroutinesAreWatched has every package that starts goroutines look for those
// that its tests leave behind.
func TestGoroutinesAreWatched(t *testing.T) {
	excused := unwatched()
	for name := range imported(t) {
		product, tests := sources(t, name)
		watched := has(tests, isCall("goleak", "VerifyTestMain"))
		_, isExcused := excused[name]
		delete(excused, name)
		switch starts := has(product, startsGoroutine); {
		case starts && !watched && !isExcused:
			t.Errorf("package %s starts goroutines, and its tests have no TestMain with goleak.VerifyTestMain", name)
		case isExcused && (watched || !starts):
			t.Errorf("package %s needs no line in unwatched() in internal/importgraph/goroutines_test.go", name)
		}
	}
	for name := range excused {
		t.Errorf("package %s is in unwatched(), but not in the module", name)
	}
}

// TestPooledMemoryIsChecked has every package that pools memory check that it comes back
// empty.
func TestPooledMemoryIsChecked(t *testing.T) {
	for name := range imported(t) {
		product, tests := sources(t, name)
		if has(product, isCall("sync", "Pool")) && !has(tests, isCall("pooled", "Check")) {
			t.Errorf("package %s has a sync.Pool, and its tests call pooled.Check for nothing of it", name)
		}
	}
}

// TestWhatSkipsForTheRaceDetectorIsRun has every test that the race detector makes skip run in
// the step allocations, which looks for them by name.
func TestWhatSkipsForTheRaceDetectorIsRun(t *testing.T) {
	for name := range imported(t) {
		_, tests := sources(t, name)
		for _, file := range tests {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && strings.HasPrefix(f.Name.Name, "Test") && !strings.Contains(f.Name.Name, "Alloc") && contains(f, skipsForRace) {
					t.Errorf("%s in %s skips with the race detector, and nothing runs it without: name it after allocations", f.Name.Name, name)
				}
			}
		}
	}
}

// skipsForRace finds if raceEnabled { t.Skip(...) }.
func skipsForRace(n ast.Node) bool {
	branch, ok := n.(*ast.IfStmt)
	if !ok {
		return false
	}
	condition, ok := branch.Cond.(*ast.Ident)
	return ok && condition.Name == "raceEnabled" && contains(branch.Body, isCall("t", "Skip"))
}

// startsGoroutine finds a go statement and WaitGroup.Go.
func startsGoroutine(n ast.Node) bool {
	if _, ok := n.(*ast.GoStmt); ok {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Go"
}

// isCall finds a call of a function of a package, or of a method.
func isCall(of, name string) func(ast.Node) bool {
	return func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != name {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == of
	}
}

func has(files []*ast.File, is func(ast.Node) bool) bool {
	return slices.ContainsFunc(files, func(f *ast.File) bool { return contains(f, is) })
}

// contains reports whether is holds for in or for anything below it.
func contains(in ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// sources parses the files of a package, whatever they are built for.
func sources(t *testing.T, name string) (product, tests []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			tests = append(tests, file)
		} else {
			product = append(product, file)
		}
	}
	return product, tests
}
