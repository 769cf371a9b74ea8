// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// planner makes the plan of an expression that CEL has checked. Each of its methods returns
// nil for what is left to CEL.
type planner struct {
	references map[int64]*ast.ReferenceInfo
	types      map[int64]*types.Type
	adapter    types.Adapter
	names      []string // of the locals in scope, which are in that order
	locals     int      // the most that are in scope together
}

func planOf(checked *ast.AST, env *cel.Env) planned {
	p := planner{references: checked.ReferenceMap(), types: checked.TypeMap(), adapter: env.CELTypeAdapter()}
	of := p.plan(checked.Expr())
	return planned{of, p.locals}
}

// plan returns the plan of what has a value. Only functions of optional values take one
// that may have none.
func (p *planner) plan(e ast.Expr) plan {
	switch e.Kind() {
	case ast.LiteralKind:
		return constantPlan{e.AsLiteral()}
	case ast.CallKind:
		if c := e.AsCall(); !selects(c.FunctionName()) {
			return p.call(e, c)
		}
	case ast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			return p.presence(s)
		}
	case ast.ListKind:
		return p.list(e.AsList())
	case ast.MapKind:
		if e.AsMap().Size() == 0 {
			return constantPlan{types.NewRefValMap(p.adapter, map[ref.Val]ref.Val{})}
		}
		return nil
	case ast.ComprehensionKind:
		return p.loop(e.AsComprehension())
	}
	if path := p.path(e); path != nil && !path.optional() {
		return path
	}
	return nil
}

// plans returns a plan for each, or nil.
func (p *planner) plans(list ...ast.Expr) []plan {
	plans := make([]plan, len(list))
	for i, e := range list {
		if plans[i] = p.plan(e); plans[i] == nil {
			return nil
		}
	}
	return plans
}

func (p *planner) list(l ast.ListExpr) plan {
	plans := p.plans(l.Elements()...)
	if plans == nil || len(l.OptionalIndices()) > 0 {
		return nil
	}
	var constants []ref.Val
	for _, element := range plans {
		if c, ok := element.(constantPlan); ok {
			constants = append(constants, c.value)
		}
	}
	if len(constants) == len(plans) {
		return constantPlan{types.NewRefValList(p.adapter, constants)}
	}
	return listPlan{plans, p.adapter}
}

func (p *planner) call(e ast.Expr, c ast.CallExpr) plan {
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	function, overload := c.FunctionName(), p.overload(e)
	switch function {
	case "orValue", "hasValue":
		return p.ofOptional(args)
	case operators.Conditional:
		return p.choice(args)
	}
	plans := p.plans(args...)
	switch {
	case plans == nil:
		return nil
	case function == operators.LogicalAnd, function == operators.LogicalOr:
		return logicPlan{function == operators.LogicalOr, plans}
	}
	switch len(plans) {
	case 1:
		if do := unaryFunctions[function]; do != nil {
			return unaryPlan{plans[0], do}
		}
	case 2:
		if do, unary := ofConstant(function, overload, plans[1]); unary {
			if do == nil {
				return nil
			}
			return unaryPlan{plans[0], do}
		}
		if make := binaryFunctions[function]; make != nil {
			return binaryPlan{plans[0], plans[1], make(overload)}
		}
	}
	return nil
}

// overload is the one that CEL has found; "": there are several.
func (p *planner) overload(e ast.Expr) string {
	if r := p.references[e.ID()]; r != nil && len(r.OverloadIDs) == 1 {
		return r.OverloadIDs[0]
	}
	return ""
}

// ofConstant returns the function that a function of two is with that second one, if CEL
// prepares it for the constant; nil: it is left to CEL.
func ofConstant(function, overload string, second plan) (do unaryFunction, unary bool) {
	constant, ok := second.(constantPlan)
	switch {
	case function == overloads.Matches:
		if pattern, text := constant.value.(types.String); text {
			return matching(string(pattern)), true
		}
		return nil, true
	case function == operators.In && overload == overloads.InList && ok:
		return oneOfThem(constant.value.(traits.Lister)), true
	}
	return nil, false
}

// ofOptional is orValue and hasValue.
func (p *planner) ofOptional(args []ast.Expr) plan {
	of := p.path(args[0])
	if of == nil || !of.optional() {
		return nil
	}
	if len(args) == 1 {
		return hasValuePlan{of}
	}
	if none := p.plan(args[1]); none != nil {
		return orValuePlan{of, none}
	}
	return nil
}

func (p *planner) choice(args []ast.Expr) plan {
	plans := p.plans(args...)
	if plans == nil {
		return nil
	}
	for i, branch := range plans[1:] {
		if path, ok := branch.(*pathPlan); ok {
			plans[1+i] = uncharged{path}
		}
	}
	return choicePlan{plans[0], plans[1], plans[2]}
}
