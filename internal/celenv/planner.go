// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
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

func (p *planner) declare(names ...string) (slot int, end func()) {
	slot = len(p.names)
	p.names = append(p.names, names...)
	p.locals = max(p.locals, len(p.names))
	return slot, func() { p.names = p.names[:slot] }
}

func (p *planner) loop(c ast.ComprehensionExpr) plan {
	over := p.plan(c.IterRange())
	if over == nil || c.HasIterVar2() {
		return nil
	}
	if init := c.AccuInit(); init.Kind() == ast.ListKind && init.AsList().Size() == 0 {
		return p.collection(c, over)
	}
	begin, ok := p.plan(c.AccuInit()).(constantPlan)
	if !ok || begin.value.Type() != types.BoolType && begin.value.Type() != types.IntType {
		return nil
	}
	fold := &foldPlan{over: over, begin: begin.value}
	sum, end := p.declare(c.AccuVar())
	defer end()
	fold.sum, fold.result = sum, p.plan(c.Result())
	fold.element, _ = p.declare(c.IterVar())
	fold.condition, fold.step = p.plan(c.LoopCondition()), p.plan(c.LoopStep())
	if fold.condition == nil || fold.step == nil || fold.result == nil {
		return nil
	}
	return fold
}

// collection is a loop whose step adds an element, or, under a condition, adds one or none.
func (p *planner) collection(c ast.ComprehensionExpr, over plan) plan {
	is := func(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }
	if c.LoopCondition().Kind() != ast.LiteralKind || c.LoopCondition().AsLiteral() != types.True || !is(c.Result(), c.AccuVar()) {
		return nil
	}
	collect := &collectPlan{over: over, adapter: p.adapter}
	slot, end := p.declare(c.IterVar(), c.AccuVar()) // which nothing but the loop asks for
	defer end()
	collect.element = slot
	step := c.LoopStep()
	if step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
		args := step.AsCall().Args()
		if collect.condition = p.plan(args[0]); collect.condition == nil || !is(args[2], c.AccuVar()) {
			return nil
		}
		step = args[1]
	}
	if step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Add {
		return nil
	}
	args := step.AsCall().Args()
	if !is(args[0], c.AccuVar()) || args[1].Kind() != ast.ListKind || args[1].AsList().Size() != 1 {
		return nil
	}
	added, ok := p.plan(args[1]).(listPlan) // of a list of constants CEL charges nothing
	if !ok {
		return nil
	}
	collect.value = added.elements[0]
	return collect
}
