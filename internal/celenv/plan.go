// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A plan is an expression of a policy, of the common forms, evaluated over the values of
// CEL without CEL's interpreter. It comes to what CEL comes to, in the same order, and
// charges what CEL charges; or it does not know, which is nil, and CEL evaluates the
// whole expression: every error is CEL's to find.
type plan interface{ eval(e *Evaluation) ref.Val }

// planned is the plan of an expression; the zero value is none.
type planned struct {
	plan   plan
	locals int // how many variables its loops have
}

// frame is what the plan under way has.
type frame struct {
	cost uint64
	base int // where its locals begin
}

// follow evaluates an expression by its plan; ok is false where it has none, or does not
// know.
func (e *Evaluation) follow(p planned) (value ref.Val, cost int64, ok bool) {
	if p.plan == nil {
		return nil, 0, false
	}
	outer, inside := e.frame, frame{base: len(e.locals)}
	e.frame, e.locals = inside, append(e.locals, make([]ref.Val, p.locals)...)
	defer func() {
		if recover() != nil { // in a function of CEL's values, which is an error to CEL
			value, cost, ok = nil, 0, false
		}
		clear(e.locals[inside.base:])
		e.frame, e.locals = outer, e.locals[:inside.base]
	}()
	value = p.plan.eval(e)
	inside.cost = e.cost
	return value, int64(min(inside.cost, uint64(ExpressionBudget)+1)), value != nil && inside.cost <= uint64(ExpressionBudget)
}

// spend charges before the work is done, and reports whether CEL would have it done.
func (e *Evaluation) spend(cost uint64) bool {
	e.cost += cost
	return e.cost <= uint64(ExpressionBudget)
}

// goesOn is called in each turn of a loop. It reports whether there is another one.
func (e *Evaluation) goesOn() bool {
	if e.turns++; e.turns%checkFrequency == 0 && !e.deadline.IsZero() && !time.Now().Before(e.deadline) {
		e.interrupted = true
	}
	return !e.interrupted && e.spend(0)
}

// hasTime is called before what takes longer than it costs. It reports whether it may be done
// yet: of two such in a row the second looks at the clock.
func (e *Evaluation) hasTime() bool {
	if e.unwatched <= 0 && e.late() {
		e.interrupted = true
		return false
	}
	e.unwatched = 0
	return true
}

func (e *Evaluation) local(slot int) *ref.Val { return &e.locals[e.base+slot] }

// constantPlan is a literal, or a list of them, which costs nothing.
type constantPlan struct{ value ref.Val }

func (p constantPlan) eval(*Evaluation) ref.Val { return p.value }

// namePlan is a variable of the environment, localPlan one of a loop. What it costs to read
// one is charged by the path that begins with it.
type (
	namePlan  string
	localPlan int
)

func (p namePlan) eval(e *Evaluation) ref.Val {
	found, _ := e.ResolveName(string(p))
	value, _ := found.(ref.Val)
	return known(value)
}

func (p localPlan) eval(e *Evaluation) ref.Val { return known(*e.local(int(p))) }

// known is v if it is a value that plans are about: no error, and nothing that may be none.
func known(v ref.Val) ref.Val {
	switch v.(type) {
	case *types.Err, *types.Unknown, *types.Optional:
		return nil
	}
	return v
}

// choicePlan is ?:, which costs nothing itself.
type choicePlan struct{ condition, yes, no plan }

func (p choicePlan) eval(e *Evaluation) ref.Val {
	switch p.condition.eval(e) {
	case types.True:
		return p.yes.eval(e)
	case types.False:
		return p.no.eval(e)
	}
	return nil
}

// logicPlan is || if decisive is true, and && if it is false.
type logicPlan struct {
	decisive types.Bool
	terms    []plan
}

func (p logicPlan) eval(e *Evaluation) ref.Val {
	for _, term := range p.terms {
		truth, ok := term.eval(e).(types.Bool)
		if !ok {
			return nil // a later one may decide, but what it takes to know is CEL's
		}
		if truth == p.decisive {
			return p.decisive
		}
	}
	return !p.decisive
}

// unaryPlan and binaryPlan are functions of one value and of two.
type (
	unaryPlan struct {
		of plan
		do unaryFunction
	}
	binaryPlan struct {
		left, right plan
		do          binaryFunction
	}
	unaryFunction  func(e *Evaluation, of ref.Val) ref.Val
	binaryFunction func(e *Evaluation, left, right ref.Val) ref.Val
)

func (p unaryPlan) eval(e *Evaluation) ref.Val {
	of := p.of.eval(e)
	if of == nil {
		return nil
	}
	return p.do(e, of)
}

func (p binaryPlan) eval(e *Evaluation) ref.Val {
	left := p.left.eval(e)
	if left == nil {
		return nil
	}
	right := p.right.eval(e)
	if right == nil {
		return nil
	}
	return p.do(e, left, right)
}

// listPlan is a list some of whose elements are no literals.
type listPlan struct {
	elements []plan
	adapter  types.Adapter
}

func (p listPlan) eval(e *Evaluation) ref.Val {
	elements := make([]ref.Val, len(p.elements))
	for i, element := range p.elements {
		if elements[i] = element.eval(e); elements[i] == nil {
			return nil
		}
	}
	e.cost += costOfList
	return types.NewRefValList(p.adapter, elements)
}
