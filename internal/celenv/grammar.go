// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"math"
	"regexp"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

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
