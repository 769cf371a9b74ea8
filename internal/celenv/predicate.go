// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// A predicate is an expression of the common forms, evaluated over the scanned review
// without CEL. It says what CEL would say and charges what CEL would charge, or it says
// that it does not know: of anything absent, of another type than meant, or written
// with escapes, the value or the error is CEL's to find.
type predicate interface{ eval(v *Variables) value }

// value is what an expression comes to.
type value struct {
	kind   kind
	truth  bool
	number int64
	text   string // borrowed
}

type kind uint8

const (
	unknown kind = iota // CEL knows
	absent              // an error to everything but has()
	null
	boolean
	number
	text
	filled    // one of the objects, with something in it
	container // a map or a list of which nothing but its presence is read
	other     // something that is neither absent nor null
)

func boolOf(b bool) value  { return value{kind: boolean, truth: b} }
func numberOf(n int) value { return value{kind: number, number: int64(n)} }

// maxText is the longest string that predicates look at: CEL charges one for its size,
// and so do they, however long it takes to count.
const maxText = 64 << 10

func textOf(s string) value {
	if len(s) > maxText {
		return value{kind: other}
	}
	return value{kind: text, text: s}
}

// decide returns what a predicate comes to, if it knows.
func decide(p predicate, v *Variables) (known result, ok bool) {
	if p == nil {
		return result{}, false
	}
	v.spent = 0
	truth := p.eval(v)
	return result{holds: truth.truth, cost: v.spent}, truth.kind == boolean
}

// maxSpent is what a predicate may cost, in units of CEL: well below 0.1 ms. What
// costs more is left to CEL, which watches the limit of an expression and the
// deadline. Typical conditions cost 10.
const maxSpent = 1000

// spend charges what CEL charges, before the work is done. It returns false if
// that is too much for a predicate.
func (v *Variables) spend(cost uint64) bool {
	v.spent += min(cost, maxSpent+1) // which cannot overflow
	return v.spent <= maxSpent
}

// read is the value of an operand. Each step of its path costs one.
type read struct {
	of   operand
	cost uint64
}

func (r read) eval(v *Variables) value {
	if !v.spend(r.cost) {
		return value{}
	}
	found := r.of.read(v)
	if found.kind == absent {
		return value{}
	}
	return found
}

// presence is has(): absent is false.
type presence read

func (p presence) eval(v *Variables) value {
	if !v.spend(p.cost) {
		return value{}
	}
	found := p.of.read(v)
	if found.kind == unknown {
		return value{}
	}
	return boolOf(found.kind != absent)
}

type literal value

func (l literal) eval(*Variables) value { return value(l) }

type not struct{ of predicate }

func (n not) eval(v *Variables) value {
	of := n.of.eval(v)
	if of.kind != boolean || !v.spend(1) {
		return value{}
	}
	return boolOf(!of.truth)
}

// either is || if decisive is true, and && if it is false: what the left side
// decides, the right side is not asked about.
type either struct {
	decisive    bool
	left, right predicate
}

func (e either) eval(v *Variables) value {
	left := e.left.eval(v)
	if left.kind != boolean {
		return value{} // the right side may decide, but what it takes to know is CEL's
	}
	if left.truth == e.decisive {
		return left
	}
	return e.right.eval(v)
}

// binary is an operation of two values.
type binary struct {
	do          operation
	left, right predicate
}

func (b binary) eval(v *Variables) value { return b.do(v, b.left.eval(v), b.right.eval(v)) }

type operation func(v *Variables, left, right value) value

// operations are those of two operands that are no collections.
var operations = map[string]operation{
	operators.Equals:        equals,
	operators.NotEquals:     differs,
	operators.Less:          ofNumbers(func(a, b int64) bool { return a < b }),
	operators.LessEquals:    ofNumbers(func(a, b int64) bool { return a <= b }),
	operators.Greater:       ofNumbers(func(a, b int64) bool { return a > b }),
	operators.GreaterEquals: ofNumbers(func(a, b int64) bool { return a >= b }),
	overloads.StartsWith:    ofTexts(strings.HasPrefix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.EndsWith:      ofTexts(strings.HasSuffix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.Contains:      ofTexts(strings.Contains, func(a, b string) uint64 { return traversal(length(a)) * traversal(length(b)) }),
}

// equals compares with null, or two values of one kind.
func equals(v *Variables, left, right value) value {
	known := left.kind == null || right.kind == null || left.kind == right.kind && left.kind <= text
	size := min(left.size(), right.size())
	if !known || size < 0 || !v.spend(traversal(size)) {
		return value{}
	}
	return boolOf(left == right)
}

// size is what CEL takes for the size of a value that is compared; negative: CEL knows.
func (v value) size() int {
	switch v.kind {
	case null, boolean, number, filled:
		return 1
	case text:
		return length(v.text)
	default:
		return -1
	}
}

func differs(v *Variables, left, right value) value {
	same := equals(v, left, right)
	if same.kind == boolean {
		same.truth = !same.truth
	}
	return same
}

func ofNumbers(holds func(a, b int64) bool) operation {
	return func(v *Variables, left, right value) value {
		if left.kind != number || right.kind != number || !v.spend(1) {
			return value{}
		}
		return boolOf(holds(left.number, right.number))
	}
}

func ofTexts(holds func(a, b string) bool, cost func(a, b string) uint64) operation {
	return func(v *Variables, left, right value) value {
		if left.kind != text || right.kind != text || !v.spend(cost(left.text, right.text)) {
			return value{}
		}
		return boolOf(holds(left.text, right.text))
	}
}

// length is in code points.
func length(s string) int { return utf8.RuneCountInString(s) }

// traversal is what CEL charges for going over so many code points.
func traversal(size int) uint64 {
	return uint64(math.Ceil(float64(size) * common.StringTraversalCostFactor))
}

// matches is matches() with a constant pattern.
type matches struct {
	of      predicate
	pattern *regexp.Regexp
	cost    uint64 // for each ten code points of what is matched
}

func (m matches) eval(v *Variables) value {
	of := m.of.eval(v)
	if of.kind != text || !v.spend(uint64(math.Ceil((1+float64(length(of.text)))*common.StringTraversalCostFactor))*m.cost) {
		return value{}
	}
	return boolOf(m.pattern.MatchString(of.text))
}

// oneOf is in with a list of constant strings, which CEL does not charge for.
type oneOf struct {
	of   predicate
	list map[string]struct{}
}

func (o oneOf) eval(v *Variables) value {
	of := o.of.eval(v)
	if of.kind != text {
		return value{}
	}
	_, ok := o.list[of.text]
	return boolOf(ok)
}

// within is in with a collection.
type within struct {
	key  predicate
	in   collection
	cost uint64 // of the path of the collection
}

func (w within) eval(v *Variables) value {
	key := w.key.eval(v)
	if key.kind != text || !v.spend(w.cost+w.in.cost(v)) {
		return value{}
	}
	found := w.in.find(v, key.text)
	if found.kind == unknown {
		return value{}
	}
	return boolOf(found.kind != absent)
}

// size is size() of a collection, sizeOfText of a string.
type (
	size struct {
		of   collection
		cost uint64
	}
	sizeOfText struct{ of predicate }
)

func (s size) eval(v *Variables) value {
	if !v.spend(s.cost + 1) {
		return value{}
	}
	return s.of.count(v)
}

func (s sizeOfText) eval(v *Variables) value {
	of := s.of.eval(v)
	if of.kind != text || !v.spend(1) {
		return value{}
	}
	return numberOf(length(of.text))
}

// predicateOf returns the predicate for an expression that CEL has compiled, and so
// checked, or nil if one is not known.
func predicateOf(e ast.Expr) predicate {
	switch e.Kind() {
	case ast.LiteralKind:
		return literalOf(e)
	case ast.CallKind:
		if p := callOf(e.AsCall()); p != nil {
			return p
		}
	case ast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			if of, cost := operandOf(s.Operand(), s.FieldName()); of != nil {
				return presence{of, cost - 1}
			}
			return nil
		}
	}
	if of, cost := operandOf(e); of != nil {
		return read{of, cost}
	}
	return nil
}

func literalOf(e ast.Expr) predicate {
	switch l := e.AsLiteral().(type) {
	case types.Bool:
		return literal(boolOf(bool(l)))
	case types.Int:
		return literal{kind: number, number: int64(l)}
	case types.String:
		return literal(textOf(string(l)))
	case types.Null:
		return literal{kind: null}
	}
	return nil
}

// operandOf returns the operand that e is, or the field of that name of it, and what
// it costs to read it.
func operandOf(e ast.Expr, field ...string) (operand, uint64) {
	path, ok := appendPath(nil, e)
	if !ok {
		return nil, 0
	}
	path = append(path, field...)
	return operandAt(path), uint64(len(path))
}

// appendPath appends the steps by which e says where to look, such as object,
// metadata, labels, app; ok is false if it is something else.
func appendPath(path []string, e ast.Expr) (_ []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return append(path, e.AsIdent()), true
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			path, ok = appendPath(path, s.Operand())
			return append(path, s.FieldName()), ok
		}
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index {
			return nil, false
		}
		if key, isText := c.Args()[1].AsLiteral().(types.String); isText {
			path, ok = appendPath(path, c.Args()[0])
			return append(path, string(key)), ok
		}
	}
	return nil, false
}

func callOf(c ast.CallExpr) predicate {
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	name := c.FunctionName()
	switch name {
	case overloads.Size:
		return sizeOf(args[0])
	case operators.LogicalNot:
		if of := predicateOf(args[0]); of != nil {
			return not{of}
		}
		return nil
	case operators.In:
		return inOf(args[0], args[1])
	case overloads.Matches:
		return matchesOf(args[0], args[1])
	}
	if len(args) != 2 {
		return nil
	}
	left, right := predicateOf(args[0]), predicateOf(args[1])
	if left == nil || right == nil {
		return nil
	}
	switch do := operations[name]; {
	case name == operators.LogicalAnd, name == operators.LogicalOr:
		return either{name == operators.LogicalOr, left, right}
	case do != nil:
		return binary{do, left, right}
	}
	return nil
}

func sizeOf(e ast.Expr) predicate {
	of, cost := operandOf(e)
	if c, ok := of.(collection); ok {
		return size{c, cost}
	}
	if of := predicateOf(e); of != nil {
		return sizeOfText{of}
	}
	return nil
}

func inOf(e, in ast.Expr) predicate {
	of := predicateOf(e)
	if of == nil {
		return nil
	}
	if in.Kind() == ast.ListKind {
		list := map[string]struct{}{}
		for _, each := range in.AsList().Elements() {
			s, ok := each.AsLiteral().(types.String)
			if !ok {
				return nil
			}
			list[string(s)] = struct{}{}
		}
		if len(list) == 0 {
			return nil // CEL does not look at what may be in it
		}
		return oneOf{of, list}
	}
	if at, cost := operandOf(in); at != nil {
		if c, ok := at.(collection); ok {
			return within{of, c, cost}
		}
	}
	return nil
}

func matchesOf(e, pattern ast.Expr) predicate {
	of := predicateOf(e)
	s, ok := pattern.AsLiteral().(types.String)
	if of == nil || !ok {
		return nil
	}
	compiled, err := regexp.Compile(string(s))
	if err != nil {
		return nil
	}
	return matches{of, compiled, uint64(math.Ceil(float64(length(string(s))) * common.RegexStringLengthCostFactor))}
}
