// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"context"
	"errors"

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

var errNoCost = errors.New("runtime cost could not be calculated for expression, no further expression will be run")

// Condition is a compiled expression, safe for concurrent use.
type Condition struct{ program cel.Program }

// Evaluate evaluates the condition and returns what is left of the budget. A
// negative rest comes with an error after which no condition must be run, and
// which makes the results of those before it void.
func (c *Condition) Evaluate(v *Variables, budget int64) (holds bool, left int64, err error) {
	// Bounded by cost, so there is nothing to cancel.
	result, details, err := c.program.ContextEval(context.Background(), v)
	if details == nil || details.ActualCost() == nil {
		return false, -1, errNoCost
	}
	cost := *details.ActualCost()
	if cost > uint64(budget) {
		return false, -1, ErrOutOfBudget
	}
	left = budget - int64(cost)
	if err != nil {
		return false, left, err
	}
	return result == types.True, left, nil
}
