// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"context"
	"errors"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
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
}

// Evaluate evaluates the condition and returns what is left of the budget. A
// negative rest comes with an error after which no condition must be run, and
// which makes the results of those before it void. No error quotes the object. Cost bounds each webhook's
// conditions, the deadline, if it is not zero, those of all together.
func (c *Condition) Evaluate(v *Variables, budget int64, deadline time.Time) (holds bool, left int64, err error) {
	ctx := context.Background()
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	result, details, err := c.program.ContextEval(ctx, v)
	if err != nil && ctx.Err() != nil {
		return false, -1, ErrInterrupted
	}
	if details == nil || details.ActualCost() == nil {
		return false, -1, errNoCost
	}
	cost := *details.ActualCost()
	if cost > uint64(budget) {
		return false, -1, ErrOutOfBudget
	}
	left = budget - int64(cost)
	if err != nil {
		return false, left, c.discreet(err)
	}
	return result == types.True, left, nil
}
