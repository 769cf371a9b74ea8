// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one small bug: an operator that is another, an operand that does not
// count, a statement that is not executed.
type mutant struct {
	id       int // what MUTANT is set to, from 1
	file     string
	line     int
	function string
	kind     kind
	text     string // what is mutated, in one line
	wrap     edit
}

// kind is what a mutant does.
type kind string

// The kinds of mutants.
const (
	negate     kind = "negate"     // a condition says the opposite
	boundary   kind = "boundary"   // < is <=, > is >= and the other way round
	operand    kind = "operand"    // an operand of && or || does not count
	arithmetic kind = "arithmetic" // + is -, * is / and the other way round
	drop       kind = "drop"       // a statement is not executed
)

// key names m without its line, so that it survives changes elsewhere in a file.
func (m *mutant) key() string {
	return fmt.Sprintf("%s %s: %s `%s`", m.file, m.function, m.kind, m.text)
}

// edit surrounds the bytes from start to end, and replaces the operator at op, if
// there is one, by a comma.
type edit struct {
	start, end    int
	before, after string
	op, opLen     int
}

// source is a file with its mutants.
type source struct {
	path    string
	text    []byte
	mutants []*mutant
}

// read parses a file and finds its mutants, whose ids begin after the given one.
func read(path string, after int) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{fset: fset, name: filepath.Base(path), next: after}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function = functionName(d)
			if d.Body != nil {
				ast.Inspect(d.Body, f.visit)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				f.function = "var"
				ast.Inspect(d, f.visit)
			}
		}
	}
	return &source{path: path, mutants: f.found}, nil
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return fmt.Sprintf("%v.%s", t, d.Name.Name)
}

// finder collects the mutants of one file.
type finder struct {
	fset     *token.FileSet
	name     string
	function string
	next     int
	found    []*mutant
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ArrayType: // its length is constant
		return n.Len == nil
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

var boundaries = map[token.Token]string{token.LSS: "mutantLess", token.LEQ: "mutantAtMost", token.GTR: "mutantMore", token.GEQ: "mutantAtLeast"}

var arithmetics = map[token.Token]string{token.ADD: "mutantSum", token.SUB: "mutantDifference", token.MUL: "mutantProduct", token.QUO: "mutantQuotient"}

func (f *finder) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.add(n, negate, "(mutantIs(%d) != (", "))", nil)
		if name, ok := boundaries[n.Op]; ok {
			f.add(n, boundary, name+"(%d, ", ")", n)
		}
	case token.LAND:
		f.add(n.X, operand, "(mutantIs(%d) || (", "))", nil)
		f.add(n.Y, operand, "(mutantIs(%d) || (", "))", nil)
	case token.LOR:
		f.add(n.X, operand, "(!mutantIs(%d) && (", "))", nil)
		f.add(n.Y, operand, "(!mutantIs(%d) && (", "))", nil)
	default:
		if name, ok := arithmetics[n.Op]; ok && !isString(n.X) && !isString(n.Y) {
			f.add(n, arithmetic, name+"(%d, ", ")", n)
		}
	}
}

func isString(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isString(e.X) || isString(e.Y)
	}
	return false
}

// condition negates what is not a BinaryExpr, which has mutants of its own.
func (f *finder) condition(cond ast.Expr) {
	if cond == nil {
		return
	}
	if b, ok := cond.(*ast.BinaryExpr); !ok || b.Op == token.AND || b.Op == token.OR {
		f.add(cond, negate, "(mutantIs(%d) != (", "))", nil)
	}
}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		if droppable(s) {
			f.add(s, drop, "if !mutantIs(%d) { ", " }", nil)
		}
	}
}

// droppable reports whether a mutant without s is of interest. Locks are not: the
// race detector looks after them. What is logged is read by people.
func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !allBlank(s.Lhs)
	case *ast.IncDecStmt, *ast.SendStmt:
		return true
	case *ast.BranchStmt:
		return s.Label == nil && s.Tok != token.FALLTHROUGH
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && !ignored(call)
	case *ast.DeferStmt:
		return !ignored(s.Call)
	case *ast.GoStmt:
		return true
	}
	return false
}

func allBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

func ignored(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Lock", "Unlock", "RLock", "RUnlock", "Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "LogAttrs":
			return true
		}
	}
	return false
}

// add notes a mutant of n; comparison, if not nil, is turned into a call of two
// arguments.
func (f *finder) add(n ast.Node, k kind, before, after string, call *ast.BinaryExpr) {
	f.next++
	position := f.fset.Position(n.Pos())
	m := &mutant{id: f.next, file: f.name, line: position.Line, function: f.function, kind: k, text: oneLine(f.fset, n), wrap: edit{
		start: position.Offset, end: f.fset.Position(n.End()).Offset, before: fmt.Sprintf(before, f.next), after: after}}
	if call != nil {
		m.line = f.fset.Position(call.OpPos).Line
		m.wrap.op, m.wrap.opLen = f.fset.Position(call.OpPos).Offset, len(call.Op.String())
	}
	f.found = append(f.found, m)
}

// oneLine is the text of n, cut if it is long.
func oneLine(fset *token.FileSet, n ast.Node) string {
	var b bytes.Buffer
	_ = printer.Fprint(&b, fset, n) // into memory
	text := strings.Join(strings.Fields(b.String()), " ")
	const most = 100
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ReplaceAll(text, "`", "'")
}

// instrumented is the file with all of its mutants in it, of which MUTANT chooses
// one. Lines stay where they were.
func (s *source) instrumented() []byte {
	type insertion struct {
		at, rank int // of two at one place, the lower rank comes first
		text     string
		skip     int
	}
	var all []insertion
	for i, m := range s.mutants {
		// What is found first is the outer one: it opens first and closes last.
		all = append(all,
			insertion{at: m.wrap.start, rank: len(s.mutants) + i, text: m.wrap.before},
			insertion{at: m.wrap.end, rank: len(s.mutants) - i - 1, text: m.wrap.after})
		if m.wrap.opLen > 0 {
			all = append(all, insertion{at: m.wrap.op, rank: len(s.mutants) * 2, text: ",", skip: m.wrap.opLen})
		}
	}
	slices.SortStableFunc(all, func(a, b insertion) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.rank - b.rank
	})
	var out bytes.Buffer
	done := 0
	for _, in := range all {
		out.Write(s.text[done:in.at])
		out.WriteString(in.text)
		done = in.at + in.skip
	}
	out.Write(s.text[done:])
	return out.Bytes()
}
