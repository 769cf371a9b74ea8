// SPDX-License-Identifier: Apache-2.0

package match

import (
	"cmp"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// The matchConditions of a webhook must all be true (KEP-3716). If any is false
// the webhook is skipped, even if others fail; otherwise a failure is up to the
// failure policy. As in kube-apiserver all conditions are evaluated, from one
// budget, and running out of it is a failure whatever was false before.
type conditions struct {
	list    []condition
	ignore  bool  // failurePolicy Ignore: a failure skips the webhook
	objects bool  // one of them looks into the objects
	asks    []int // indexes of those that may ask the cluster's authorizer
	answer  bool  // a failure that does not skip is for the Hook
}

type condition struct {
	name     string
	compiled *celenv.Condition
}

func compileConditions(spec Spec, cel *celenv.Compiler) (conditions, error) {
	c := conditions{ignore: spec.FailurePolicy == admissionregistrationv1.Ignore, answer: spec.ConditionsAnswer}
	var errs []error
	for i, m := range spec.MatchConditions {
		compiled, err := cel.Compile(m.Expression)
		if err != nil {
			errs = append(errs, &CompileError{Field: fmt.Sprintf("matchConditions[%d].expression", i), Value: m.Expression, Err: err})
			continue
		}
		c.list = append(c.list, condition{m.Name, compiled})
		c.objects = c.objects || compiled.ReadsObjects()
		if compiled.Authorizes() {
			c.asks = append(c.asks, i)
		}
	}
	return c, errors.Join(errs...)
}

func (c *conditions) evaluate(s *Subject) Decision {
	if len(c.list) == 0 {
		return Decision{}
	}
	if c.objects {
		done, err := s.Turn(len(s.Object.Raw) + len(s.Review.OldObject.Raw))
		if err != nil {
			return Decision{Reason: NoTimeLeft, Condition: c.list[0].name, Err: c.list[0].wrap(err)}
		}
		defer done()
	}
	var untrue, failing *condition // the first of each
	var errs []error
	variables, budget := s.Variables(), celenv.Budget
	for i := range c.list {
		each := &c.list[i]
		holds, left, err := each.compiled.Evaluate(variables, budget, s.Deadline)
		if wanted, ok := errors.AsType[*celenv.Unanswered](err); ok {
			return Decision{Reason: AuthorizerNotAsked, Condition: each.name, Err: each.wrap(err), Unanswered: wanted}
		}
		switch {
		case errors.Is(err, celenv.ErrInterrupted):
			return Decision{Reason: NoTimeLeft, Condition: each.name, Err: each.wrap(err)}
		case left < 0:
			return c.failed(each, []error{each.wrap(err)})
		case err != nil:
			errs = append(errs, each.wrap(err))
			failing = cmp.Or(failing, each)
		case !holds:
			untrue = cmp.Or(untrue, each)
		}
		budget = left
	}
	switch {
	case untrue != nil:
		return Decision{Reason: MatchCondition, Condition: untrue.name}
	case failing != nil:
		return c.failed(failing, errs)
	}
	return Decision{}
}

func (c *condition) wrap(err error) error {
	return fmt.Errorf("matchCondition %q: %w", c.name, err)
}

func (c *conditions) failed(by *condition, errs []error) Decision {
	d := Decision{Reason: ConditionRefusal, Condition: by.name, Err: utilerrors.NewAggregate(errs)}
	switch {
	case c.ignore:
		d.Reason = ConditionError
	case c.answer:
		return Decision{Condition: by.name}
	}
	return d
}
