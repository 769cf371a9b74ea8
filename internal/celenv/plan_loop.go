// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// foldPlan is a loop that comes to a bool or a number: all(), exists(), exists_one().
type foldPlan struct {
	over                    plan
	element, sum            int // where they are among the locals
	begin                   ref.Val
	condition, step, result plan
}

func (p *foldPlan) eval(e *Evaluation) ref.Val {
	elements := iteratorOf(p.over.eval(e))
	if elements == nil {
		return nil
	}
	*e.local(p.sum) = p.begin
	for elements.HasNext() == types.True {
		*e.local(p.element) = elements.Next()
		condition, ok := p.condition.eval(e).(types.Bool)
		if !ok {
			return nil
		}
		if !condition {
			break
		}
		sum := p.step.eval(e)
		if sum == nil || !e.goesOn() {
			return nil
		}
		*e.local(p.sum) = sum
	}
	return p.result.eval(e)
}

// collectPlan is a loop that comes to a list: map(), filter().
type collectPlan struct {
	over      plan
	element   int  // where it is among the locals
	condition plan // nil: every element
	value     plan
	adapter   types.Adapter
}

// What CEL charges for a list that is made, and for each element added to one: for the list,
// for one with the element, and for their sum.
const (
	costOfList    = common.ListCreateBaseCost
	costOfElement = 1 + costOfList + 1
)

func (p *collectPlan) eval(e *Evaluation) ref.Val {
	elements := iteratorOf(p.over.eval(e))
	if elements == nil {
		return nil
	}
	var values []ref.Val
	for elements.HasNext() == types.True {
		*e.local(p.element) = elements.Next()
		holds := true
		if p.condition != nil {
			condition, ok := p.condition.eval(e).(types.Bool)
			if !ok {
				return nil
			}
			holds = bool(condition)
		}
		if holds {
			value := p.value.eval(e)
			if value == nil || !e.spend(costOfElement) {
				return nil
			}
			values = append(values, value)
		}
		if !e.goesOn() {
			return nil
		}
	}
	e.cost++
	return types.NewRefValList(p.adapter, values)
}

// iteratorOf is over the elements of a list, or the keys of a map.
func iteratorOf(v ref.Val) traits.Iterator {
	switch v := v.(type) {
	case traits.Mapper:
		return v.Iterator()
	case traits.Lister:
		return v.Iterator()
	}
	return nil
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
