// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// pathPlan is what is selected step by step of a value, or the value itself.
type pathPlan struct {
	of    plan
	steps []pathStep
}

// pathStep selects a member of a map or an element of a list. From the first that is
// optional on, what is not there is no error.
type pathStep struct {
	key      ref.Val
	text     string // the key as a string
	optional bool
}

// resolve returns nil for what is not there; ok is false if it does not know. Each step
// costs one.
func (p *pathPlan) resolve(e *Evaluation) (at ref.Val, ok bool) {
	at = p.of.eval(e)
	optional := false
	for i := range p.steps {
		step := &p.steps[i]
		optional = optional || step.optional
		if at, ok = step.in(at); !ok || at == nil {
			return nil, ok && optional
		}
		e.cost++
	}
	return at, at != nil
}

// in returns what the step selects; nil: it is not there. ok is false for an error, and for
// what only CEL knows.
func (s *pathStep) in(of ref.Val) (value ref.Val, ok bool) {
	switch of := of.(type) {
	case *typedMap:
		if s.key.Type() != types.StringType {
			return nil, false
		}
		i := of.place(s.text)
		if i < 0 {
			return nil, true
		}
		value = known(of.at(i))
	case traits.Mapper:
		found, is := of.Find(s.key)
		if types.IsError(found) {
			return nil, false
		}
		if !is {
			return nil, true
		}
		value = known(found)
	case traits.Lister:
		i, is := s.key.(types.Int)
		if !is {
			return nil, false
		}
		if i < 0 || i >= of.Size().(types.Int) {
			return nil, true
		}
		value = known(of.Get(s.key))
	}
	return value, value != nil
}

func (p *pathPlan) eval(e *Evaluation) ref.Val {
	value, _ := p.resolve(e)
	e.cost++
	return value
}

// uncharged is a path in a branch of ?:, where CEL does not charge for reading its value.
type uncharged struct{ *pathPlan }

func (p uncharged) eval(e *Evaluation) ref.Val {
	value, _ := p.resolve(e)
	return value
}

// presencePlan is has().
type presencePlan struct {
	of   pathPlan
	last pathStep
}

func (p *presencePlan) eval(e *Evaluation) ref.Val {
	of, ok := p.of.resolve(e)
	if !ok {
		return nil
	}
	found, ok := p.last.in(of)
	if !ok {
		return nil
	}
	e.cost++
	return types.Bool(found != nil)
}

// orValuePlan is orValue() of a path with an optional step, hasValuePlan hasValue().
type (
	orValuePlan struct {
		of   *pathPlan
		none plan
	}
	hasValuePlan struct{ of *pathPlan }
)

func (p orValuePlan) eval(e *Evaluation) ref.Val {
	value, ok := p.of.resolve(e)
	if !ok {
		return nil
	}
	e.cost++
	if value == nil {
		return p.none.eval(e)
	}
	return value
}

func (p hasValuePlan) eval(e *Evaluation) ref.Val {
	value, ok := p.of.resolve(e)
	if !ok {
		return nil
	}
	e.cost += 2
	return types.Bool(value != nil)
}

func selects(function string) bool {
	return slices.Contains([]string{operators.Index, operators.OptIndex, operators.OptSelect}, function)
}

// path returns the path that e is.
func (p *planner) path(e ast.Expr) *pathPlan {
	switch e.Kind() {
	case ast.IdentKind:
		if of := p.name(e); of != nil {
			return &pathPlan{of: of}
		}
		return nil
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() && p.references[e.ID()] == nil { // it is no name with dots in it
			return p.longer(s.Operand(), types.String(s.FieldName()), false)
		}
	case ast.CallKind:
		if c := e.AsCall(); selects(c.FunctionName()) && c.Args()[1].Kind() == ast.LiteralKind {
			return p.longer(c.Args()[0], c.Args()[1].AsLiteral(), c.FunctionName() != operators.Index)
		}
	}
	return nil
}

// longer returns the path of e with one step more.
func (p *planner) longer(e ast.Expr, key ref.Val, optional bool) *pathPlan {
	path := p.path(e)
	if path == nil {
		of := p.plan(e)
		if of == nil || e.Kind() == ast.SelectKind || isChoice(of) {
			return nil
		}
		path = &pathPlan{of: of}
	}
	step := pathStep{key: key, optional: optional}
	switch key := key.(type) {
	case types.String:
		step.text = string(key)
	case types.Int:
	default:
		return nil
	}
	path.steps = append(path.steps, step)
	return path
}

func isChoice(p plan) bool {
	_, is := p.(choicePlan)
	return is
}

func (p *pathPlan) optional() bool {
	return slices.ContainsFunc(p.steps, func(s pathStep) bool { return s.optional })
}

// name returns the plan of a local, or of a variable that every expression may ask for.
func (p *planner) name(e ast.Expr) plan {
	reference := p.references[e.ID()]
	if reference == nil || reference.Value != nil || p.types[e.ID()].Kind() == types.TypeKind {
		return nil
	}
	name := reference.Name
	for i, local := range slices.Backward(p.names) {
		if local == name {
			return localPlan(i)
		}
	}
	switch name {
	case plugin.ObjectVarName, plugin.OldObjectVarName, plugin.RequestVarName, plugin.ParamsVarName, plugin.NamespaceVarName, plugin.VariableVarName, clusterVariable:
		return namePlan(name)
	}
	return nil
}

func (p *planner) presence(s ast.SelectExpr) plan {
	whole := p.longer(s.Operand(), types.String(s.FieldName()), false)
	if whole == nil || whole.optional() {
		return nil
	}
	last := len(whole.steps) - 1
	return &presencePlan{pathPlan{whole.of, whole.steps[:last]}, whole.steps[last]}
}
