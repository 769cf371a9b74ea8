// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// PolicyBudget is what the validations of one policy may cost together, and the
	// rest of it its messages, in CEL cost units, as in kube-apiserver: about a second.
	PolicyBudget = int64(celconfig.RuntimeCELCostBudget)
	// ExpressionBudget is what one expression may cost, and one variable.
	ExpressionBudget = int64(celconfig.PerCallLimit)

	checkFrequency = celconfig.CheckFrequency
)

// Evaluation is the evaluation of one policy over one review. Each variable is
// evaluated when the first expression asks for it, once. It costs what it costs in
// each pass in which it is used, as in kube-apiserver, which evaluates it anew then.
type Evaluation struct {
	variables *Variables
	scope     *Scope
	given     Given
	deadline  time.Time

	left        int64 // of the budget of the pass
	spent       int64 // by variables, since the last expression
	known       []knownVariable
	inside      int // the variable under way, as an index, or -1
	interrupted bool
	wanted      *Unanswered           // nothing is of use without that answer
	silent      bool                  // there is no authorizer in this pass
	plain       bool                  // objects are decoded JSON, whatever their kind
	decoded     map[*typedMap]ref.Val // objects as that, once somebody has asked
	ctx         context.Context       // until the deadline; nil: nobody has looped
	cancel      context.CancelFunc

	frame            // of the plan under way
	locals []ref.Val // of the plans under way
	turns  int       // of their loops so far
	// unwatched is what plans may spend until somebody looks at the clock again.
	unwatched int64
}

// knownVariable is what became of a variable.
type knownVariable struct {
	value   ref.Val // nil: nobody has asked
	cost    int64   // its own
	uses    []int   // the variables that it has asked for
	charged bool    // in this pass
	asked   bool    // for the authorizer, by itself
}

// Once returns what make made of this review for the key, which it is called for once:
// it says whether to keep that. Others who evaluate expressions over v wait meanwhile.
// make must be done by the deadline.
func (v *Variables) Once(key any, scope *Scope, given Given, deadline time.Time, make func(*Evaluation) (made any, keep bool)) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.kept[key]; ok {
		return known
	}
	e := newEvaluation(v, scope, given, deadline)
	defer e.close()
	made, keep := make(e)
	if keep {
		if v.kept == nil {
			v.kept = map[any]any{}
		}
		v.kept[key] = made
	}
	return made
}

func newEvaluation(v *Variables, scope *Scope, given Given, deadline time.Time) *Evaluation {
	return &Evaluation{variables: v, scope: scope, given: given, deadline: deadline, known: make([]knownVariable, len(scope.variables)), inside: -1}
}

// until returns what is done at the deadline, or when e is closed.
func (e *Evaluation) until() context.Context {
	if e.ctx == nil {
		e.ctx, e.cancel = context.WithDeadline(context.Background(), e.deadline)
	}
	return e.ctx
}

func (e *Evaluation) close() {
	if e.cancel != nil {
		e.cancel()
	}
}

// Condition evaluates a condition, as Condition.Evaluate does, over params too.
func (e *Evaluation) Condition(c *Condition, budget int64) (holds bool, left int64, err error) {
	if c.params {
		holds, left, err = e.conditionOfParams(c, budget)
	} else {
		holds, left, err = c.decide(e.variables, budget, e.deadline)
	}
	if left >= 0 && err != nil {
		err = failure(c.expression, err)
	}
	return holds, left, err
}

// conditionOfParams keeps nothing: what it comes to is of these params.
func (e *Evaluation) conditionOfParams(c *Condition, budget int64) (holds bool, left int64, err error) {
	came, err := c.evaluate(e.variables, conditionNames{e}, e.deadline)
	if err != nil {
		return false, -1, err
	}
	return came.within(budget)
}

// Pass begins a pass with a budget of its own: the validations.
func (e *Evaluation) Pass(budget int64) { e.pass(budget, false) }

// PassWithoutAuthorizer begins the pass of the messages, or of the audit annotations. As in
// kube-apiserver they see no authorizer, also not by way of a variable: one that has asked
// it is evaluated again, and has no value.
func (e *Evaluation) PassWithoutAuthorizer(budget int64) { e.pass(budget, true) }

func (e *Evaluation) pass(budget int64, silent bool) {
	if e.silent != silent {
		e.silent = silent
		e.forgetAsked()
	}
	e.left, e.spent = budget, 0
	for i := range e.known {
		e.known[i].charged = false
	}
}

// forgetAsked forgets the variables that have asked for the authorizer, and those that
// have asked for them, which come behind.
func (e *Evaluation) forgetAsked() {
	for i := range e.known {
		k := &e.known[i]
		if k.asked || slices.ContainsFunc(k.uses, func(used int) bool { return e.known[used].asked }) {
			*k = knownVariable{asked: true}
		}
	}
	for i := range e.known {
		e.known[i].asked = false
	}
}

// Left is what is left of the budget of the pass.
func (e *Evaluation) Left() int64 { return e.left }

// Evaluate evaluates an expression of the scope. An *ExpressionError is its own; after
// any other error, ErrOutOfBudget, ErrInterrupted or an *Unanswered among them, none is
// evaluated any more.
func (e *Evaluation) Evaluate(x *Expression) (Value, error) {
	v := e.variables
	v.deadline, v.interrupted = e.deadline, false
	value, cost, err := e.run(x)
	switch {
	case e.interrupted, errors.Is(err, ErrInterrupted):
		return Value{}, ErrInterrupted
	case e.wanted != nil:
		return Value{}, e.wanted
	case errors.Is(err, errNoCost):
		return Value{}, err
	}
	e.left, e.spent = e.left-e.spent, 0
	if cost > e.left {
		return Value{}, ErrOutOfBudget
	}
	e.left -= cost
	if err != nil {
		return Value{}, failure(x.text, err)
	}
	return Value{value}, nil
}

// run runs the program. The cost does not include that of variables.
func (e *Evaluation) run(x *Expression) (value ref.Val, cost int64, err error) {
	v := e.variables
	if e.interrupted = e.interrupted || v.interrupted || e.unwatched <= 0 && e.late(); e.interrupted {
		return nil, 0, ErrInterrupted
	}
	// An error stands in place of what was not converted in time, and what a plan compares
	// with one it finds different.
	if value, cost, ok := e.follow(x.planned); ok && !v.interrupted {
		e.unwatched -= cost + 1
		return value, cost, nil
	}
	if e.interrupted || v.interrupted || e.late() {
		return e.interrupt()
	}
	timed := !e.deadline.IsZero()
	var details *cel.EvalDetails
	if timed && x.loops { // interrupts are looked at in loops only
		value, details, err = x.program.ContextEval(e.until(), e)
	} else {
		value, details, err = x.program.Eval(e)
	}
	e.wanted = cmp.Or(e.wanted, v.unanswered())
	if v.interrupted || errors.Is(err, interpreter.InterruptError{}) {
		return e.interrupt()
	}
	if details == nil || details.ActualCost() == nil {
		return nil, 0, errNoCost
	}
	return value, int64(min(*details.ActualCost(), math.MaxInt64)), err
}

// late looks at the clock, and reports whether the deadline has come. Until the next time,
// plans may spend about a millisecond.
func (e *Evaluation) late() bool {
	e.unwatched = maxUnwatched
	return !e.deadline.IsZero() && !time.Now().Before(e.deadline)
}

// interrupt ends the evaluation, whose deadline has come.
func (e *Evaluation) interrupt() (ref.Val, int64, error) {
	e.variables.forget() // an error stands in place of what was not converted
	e.interrupted = true
	return nil, 0, ErrInterrupted
}

// variable returns the value of a variable to the expression that asks for it.
func (e *Evaluation) variable(i int) ref.Val {
	k := &e.known[i]
	if e.inside >= 0 {
		asking := &e.known[e.inside]
		asking.uses = append(asking.uses, i)
	}
	if k.value != nil {
		e.charge(i)
		return k.value
	}
	x, outer := e.scope.variables[i], e.inside
	e.inside = i
	value, cost, err := e.run(x.Expression)
	e.inside = outer
	switch {
	case errors.Is(err, errNoCost):
		value = types.NewErr("unable to calculate cost of variable %q", x.name)
	case err != nil:
		value = types.NewErr("composited variable %q fails to evaluate: %v", x.name, brief(err))
	}
	k.value, k.cost = value, cost
	e.charge(i)
	return k.value
}

// charge spends what a variable costs in this pass, with those that it asks for.
func (e *Evaluation) charge(i int) {
	k := &e.known[i]
	if k.charged {
		return
	}
	k.charged = true
	e.spent += k.cost
	for _, used := range k.uses {
		e.charge(used)
	}
}
