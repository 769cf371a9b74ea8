// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Budget is what all conditions of one webhook may cost together, in CEL cost
// units, as in kube-apiserver.
const Budget = int64(celconfig.RuntimeCELCostBudgetMatchConditions)

// ErrOutOfBudget says that the conditions cost too much; no further one is run.
var ErrOutOfBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// Condition is a compiled expression, safe for concurrent use.
type Condition struct{ program cel.Program }

// Evaluate evaluates the condition and returns what is left of the budget. A
// negative rest comes with an error after which no condition must be run.
func (c *Condition) Evaluate(v *Variables, budget int64) (holds bool, left int64, err error) {
	// Bounded by cost, so there is nothing to cancel.
	result, details, err := c.program.ContextEval(context.Background(), v)
	if details == nil || details.ActualCost() == nil {
		return false, -1, fmt.Errorf("the cost of the expression cannot be calculated: %w", errors.Join(err, ErrOutOfBudget))
	}
	if cost := *details.ActualCost(); cost > uint64(budget) {
		return false, -1, ErrOutOfBudget
	} else {
		left = budget - int64(cost)
	}
	if err != nil {
		return false, left, err
	}
	return result == types.True, left, nil
}
