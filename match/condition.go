// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// conditions are the compiled matchConditions of one webhook.
type conditions struct {
	list   []condition
	ignore bool // failurePolicy Ignore: an error skips the webhook
}

type condition struct {
	name     string
	compiled *celenv.Condition
}

func compileConditions(spec Spec, cel *celenv.Compiler) (conditions, error) {
	c := conditions{ignore: spec.FailurePolicy == admissionregistrationv1.Ignore}
	var errs []error
	for i, m := range spec.MatchConditions {
		compiled, err := cel.Compile(m.Expression)
		if err != nil {
			errs = append(errs, fmt.Errorf("matchConditions[%d].expression: %w", i, err))
			continue
		}
		c.list = append(c.list, condition{m.Name, compiled})
	}
	return c, errors.Join(errs...)
}

// evaluate decides as kube-apiserver does (KEP-3716): any condition that is false
// skips the webhook; an error counts only if none is.
func (c *conditions) evaluate(s *Subject) Decision {
	if len(c.list) == 0 {
		return Decision{}
	}
	variables, err := s.celVariables()
	if err != nil {
		return c.failed("", err)
	}
	var errs []error
	name, budget := "", celenv.Budget
	for i := range c.list {
		holds, left, err := c.list[i].compiled.Evaluate(variables, budget)
		switch {
		case left < 0:
			return c.failed(c.list[i].name, fmt.Errorf("matchCondition %q: %w", c.list[i].name, err))
		case err != nil:
			name = c.list[i].name
			errs = append(errs, fmt.Errorf("matchCondition %q: %w", name, err))
		case !holds:
			return Decision{Reason: MatchCondition, Condition: c.list[i].name}
		}
		budget = left
	}
	if len(errs) > 0 {
		return c.failed(name, errors.Join(errs...))
	}
	return Decision{}
}

func (c *conditions) failed(name string, err error) Decision {
	if c.ignore {
		return Decision{Reason: ConditionError, Condition: name, Err: err}
	}
	return Decision{Reason: ConditionRefusal, Condition: name, Err: err}
}
