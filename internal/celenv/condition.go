// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"context"
	"errors"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Budget is what all conditions of one webhook may cost together, in CEL cost
// units, as in kube-apiserver: about a quarter of a second. A single expression
// may cost 1,000,000.
const Budget = int64(celconfig.RuntimeCELCostBudgetMatchConditions)

// ErrOutOfBudget says that the conditions cost too much; no further one is run.
var ErrOutOfBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// ErrInterrupted says that the deadline came before the result; no further
// expression is run.
var ErrInterrupted = errors.New("evaluation was interrupted: no time left before the caller's deadline")

var errNoCost = errors.New("runtime cost could not be calculated for expression, no further expression will be run")

// Condition is a compiled expression, safe for concurrent use.
type Condition struct {
	expression string
	program    cel.Program
	predicate  predicate // decides most reviews without the program; nil: there is none
	loops      bool      // there is something in it that an interrupt can end
	objects    bool      // it looks into object or oldObject
	params     bool      // it looks at params
	authorizer bool      // it asks the cluster's authorizer
}

// ReadsObjects reports whether the condition looks into object or oldObject, which
// must then be converted, as large as they are.
func (c *Condition) ReadsObjects() bool { return c.objects }

// Authorizes reports whether the condition may ask the cluster's authorizer.
func (c *Condition) Authorizes() bool { return c.authorizer }

// Evaluate evaluates the condition and returns what is left of the budget. A
// negative rest comes with an error after which no condition must be run, and
// which makes the results of those before it void. No error quotes the object. Cost bounds each webhook's
// conditions, the deadline, if it is not zero, those of all together.
//
// A predicate that decides says what CEL would say; the clock is looked at after many of
// them. What CEL says is kept for all other webhooks that have the same condition, and costs each of
// them the same. An *Unanswered is no result: once it is answered the condition is evaluated again.
func (c *Condition) Evaluate(v *Variables, budget int64, deadline time.Time) (holds bool, left int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return c.decide(v, budget, deadline)
}

// decide is Evaluate, with v locked.
func (c *Condition) decide(v *Variables, budget int64, deadline time.Time) (holds bool, left int64, err error) {
	known, ok := v.results[c]
	if !ok {
		if known, ok = decide(c.predicate, v); ok && !v.inTime(known.cost, deadline) {
			return false, -1, ErrInterrupted
		}
	}
	if !ok {
		if known, err = c.evaluate(v, v, deadline); err != nil {
			return false, -1, err
		}
		v.keep(c, known)
	}
	return known.within(budget)
}

// within charges a budget with what the result took.
func (r result) within(budget int64) (holds bool, left int64, err error) {
	if r.cost > uint64(budget) {
		return false, -1, ErrOutOfBudget
	}
	return r.holds, budget - int64(r.cost), r.err
}

// result is what a condition came to, and what it took.
type result struct {
	holds bool
	err   error // of the expression
	cost  uint64
}

// evaluate evaluates the condition with the names of in, which come from v. It returns an
// error if there is no result.
func (c *Condition) evaluate(v *Variables, in cel.Activation, deadline time.Time) (result, error) {
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return result{}, ErrInterrupted
	}
	v.deadline, v.interrupted = deadline, false
	value, details, err := c.run(in, deadline)
	wanted := v.unanswered()
	if v.interrupted {
		v.forget() // the error stands in their place
		return result{}, ErrInterrupted
	}
	if wanted != nil {
		return result{}, wanted
	}
	if details == nil || details.ActualCost() == nil {
		return result{}, errNoCost
	}
	if errors.Is(err, interpreter.InterruptError{}) {
		return result{}, ErrInterrupted
	}
	return result{holds: value == types.True, err: c.discreet(err), cost: *details.ActualCost()}, nil
}

// run runs the program. Interrupts are looked at in loops only; without one the
// program is spared the context.
func (c *Condition) run(in cel.Activation, deadline time.Time) (ref.Val, *cel.EvalDetails, error) {
	if !c.loops || deadline.IsZero() {
		return c.program.Eval(in)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	return c.program.ContextEval(ctx, in)
}
