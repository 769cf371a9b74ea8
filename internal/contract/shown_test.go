// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// shown is what shows a row: names of tests and stories by package.
type shown map[string][]string

func (s shown) add(pkg, name string) {
	if !slices.Contains(s[pkg], name) {
		s[pkg] = append(s[pkg], name)
	}
}

// String is a cell of the list in docs/contract.md.
func (s shown) String() string {
	var parts []string
	for _, pkg := range slices.Sorted(maps.Keys(s)) {
		slices.Sort(s[pkg])
		parts = append(parts, "`"+pkg+"`: "+strings.Join(s[pkg], ", "))
	}
	return strings.Join(parts, "; ")
}

// tests returns what shows each row. A test shows the rows that it cites in its name,
// its comment or its body, a table (a variable, or a function that returns one) those
// in its lines, a story those in its name and its text.
func tests(t *testing.T) map[string]shown {
	t.Helper()
	found := map[string]shown{}
	note := func(file, name, text string) {
		pkg, _, _ := strings.Cut(path.Dir(file), "/testdata")
		for _, row := range cited(text) {
			if found[row] == nil {
				found[row] = shown{}
			}
			found[row].add(pkg, name)
		}
	}
	for _, file := range texts(t) {
		switch {
		case strings.HasSuffix(file, ".txtar"):
			comment, _, _ := strings.Cut(read(t, file), "\n-- ")
			note(file, path.Base(file), path.Base(file)+"\n"+comment)
		case strings.HasSuffix(file, "_test.go") && path.Dir(file) != "internal/contract":
			for name, text := range declared(t, file) {
				note(file, name, text)
			}
		}
	}
	return found
}

// declared returns the source of each test and each table of a file of tests, with
// its comments, by name.
func declared(t *testing.T, file string) map[string]string {
	t.Helper()
	source, files := read(t, file), token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]string{}
	note := func(name string, doc *ast.CommentGroup, node ast.Node) {
		declared[name] = doc.Text() + source[files.Position(node.Pos()).Offset:files.Position(node.End()).Offset]
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name, of := decl.Name.Name, decl.Type
			isTable := decl.Recv == nil && of.Params.NumFields() == 0 && of.Results.NumFields() == 1
			if isTable || strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				note(name, decl.Doc, decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR {
					note(spec.Names[0].Name, spec.Doc, spec)
				}
			}
		}
	}
	return declared
}
