// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// result is what a policy came to for one review, whatever its bindings make of it.
type result struct {
	decisions   []decision
	annotations []published
	// unpublished are the errors of audit annotations that deny.
	unpublished []string
	// late: the deadline came before the end. The decisions are what was decided before.
	late bool
	// unanswered: nothing of this counts without that answer of the cluster's authorizer.
	unanswered *celenv.Unanswered
	ignored    []error  // failures that failurePolicy Ignore skips, without what they quote
	steps      []string // for explain
}

// decision is a validation that does not hold, or a failure under failurePolicy Fail.
type decision struct {
	index   int // of the validation
	reason  string
	message string
}

// published is an audit annotation.
type published struct{ key, value string }

// given is what a policy is evaluated with besides the review.
type given struct {
	param     *Param
	namespace *celenv.Object // the review's: the same one for all
}

// key names what a policy comes to for one review.
func (g given) key(policy any) any {
	if g.param == nil {
		return policy
	}
	return struct {
		policy any
		param  *Param
	}{policy, g.param}
}

// sees is what expressions see of it.
func (g given) sees() celenv.Given {
	return celenv.Given{Params: g.param.Object(), Namespace: g.namespace}
}

// evaluator evaluates one policy over one review.
type evaluator struct {
	*Policy
	*celenv.Evaluation
	result
	explains bool
}

// evaluate evaluates the policy in the order and within the budgets of kube-apiserver
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go): conditions,
// validations, the messages of those that do not hold, audit annotations.
func (p *Policy) evaluate(v *celenv.Variables, over given, deadline time.Time, explains bool) *result {
	made := v.Once(over.key(p), p.scope, over.sees(), deadline, func(e *celenv.Evaluation) (any, bool) {
		run := &evaluator{Policy: p, Evaluation: e, explains: explains}
		if run.conditionsHold() && run.validate() {
			run.annotate()
		}
		if run.unanswered == nil {
			run.explainVariables()
		}
		return &run.result, !run.late && run.unanswered == nil
	})
	return made.(*result) //nolint:forcetypeassert // it is what is made
}

// conditionsHold reports whether the policy is for the review. Where that fails it is
// decided.
func (e *evaluator) conditionsHold() bool {
	holds, err := e.hold(e.Evaluation, e.step)
	if err != nil {
		e.failed(err)
	}
	return holds
}

// failed makes err the one decision: nothing else of the policy counts. It is late, or
// unanswered, if that is the error.
func (e *evaluator) failed(err error) {
	if errors.Is(err, celenv.ErrInterrupted) {
		e.late = true
		return
	}
	if errors.As(err, &e.unanswered) {
		return
	}
	e.decisions, e.ignored = nil, nil
	e.fail(0, err)
}

// fail decides a failure by the failure policy.
func (e *evaluator) fail(index int, err error) {
	if e.ignore {
		e.ignored = append(e.ignored, discreet(err))
		return
	}
	e.decisions = append(e.decisions, decision{index: index, reason: reasonInvalid, message: err.Error()})
}

// validate evaluates the validations, and reports whether the audit annotations follow.
func (e *evaluator) validate() bool {
	e.Pass(celenv.PolicyBudget)
	untrue := make([]bool, len(e.validations))
	errs := make([]error, len(e.validations))
	for i := range e.validations {
		value, err := e.Evaluate(e.validations[i].expression)
		if e.explains {
			e.step(fmt.Sprintf("validations[%d]", i), shown(value, err), err)
		}
		if err != nil && !isOwn(err) {
			if errors.Is(err, celenv.ErrInterrupted) {
				e.decideWithoutTime(untrue[:i])
			}
			e.failed(err)
			return false
		}
		errs[i], untrue[i] = err, err == nil && !value.True()
	}
	messages, exhausted := e.writeMessages(untrue)
	for i := range e.validations {
		switch {
		case e.late:
			return false
		case errs[i] != nil:
			e.fail(i, errs[i])
		case exhausted != nil:
			e.fail(i, fmt.Errorf("failed messageExpression: %w", exhausted))
		case untrue[i]:
			e.deny(i, messages[i])
		}
	}
	return true
}

// decideWithoutTime keeps the denials that there are when time is up: they stand,
// whatever those behind them would have said.
func (e *evaluator) decideWithoutTime(untrue []bool) {
	for i, is := range untrue {
		if is {
			e.deny(i, "")
		}
	}
}

func (e *evaluator) deny(i int, message string) {
	v := &e.validations[i]
	d := decision{index: i, reason: reasonInvalid, message: message}
	if v.Reason != nil {
		d.reason = string(*v.Reason)
	}
	if d.message == "" {
		d.message = strings.TrimSpace(v.Message)
	}
	if d.message == "" {
		d.message = "failed expression: " + strings.TrimSpace(v.Expression)
	}
	e.decisions = append(e.decisions, d)
}

// writeMessages evaluates the messageExpressions of validations that do not hold.
// kube-apiserver evaluates all of them from what the validations left of the budget,
// and where that runs out every validation has failed. It cannot run out where what is
// left is enough for each of them and each variable to cost the most that it may.
func (e *evaluator) writeMessages(untrue []bool) (messages []string, exhausted error) {
	left := e.Left()
	all := int64(e.messages+e.scope.Variables())*celenv.ExpressionBudget > left
	messages = make([]string, len(untrue))
	e.PassWithoutAuthorizer(left)
	for i := range e.validations {
		x := e.validations[i].message
		if x == nil || !untrue[i] && !all {
			continue
		}
		value, err := e.Evaluate(x)
		if e.explains {
			e.step(fmt.Sprintf("validations[%d].messageExpression", i), shown(value, err), err)
		}
		switch {
		case err == nil:
			messages[i] = usable(value)
		case errors.Is(err, celenv.ErrInterrupted):
			e.decideWithoutTime(untrue)
			e.late = true
			return nil, nil
		case !isOwn(err):
			return nil, err
		}
	}
	return messages, nil
}

// maxMessage is the longest message that a messageExpression may make, in bytes.
const maxMessage = 5 << 10

// usable returns the message; "" if it is none that a user is shown.
func usable(v celenv.Value) string {
	text, _ := v.Text()
	text = strings.TrimSpace(text)
	if len(text) > maxMessage || strings.Contains(text, "\n") {
		return ""
	}
	return text
}

// annotate evaluates the audit annotations, from a budget of their own.
func (e *evaluator) annotate() {
	e.PassWithoutAuthorizer(celenv.PolicyBudget)
	for i := range e.Policy.annotations {
		a := &e.Policy.annotations[i]
		value, err := e.Evaluate(a.value)
		if e.explains {
			e.step("auditAnnotations["+a.key+"]", shown(value, err), err)
		}
		if err != nil && !isOwn(err) {
			e.result.annotations, e.unpublished = nil, nil
			e.failed(err)
			return
		}
		switch text, ok := value.Text(); {
		case err != nil && e.ignore:
			e.ignored = append(e.ignored, discreet(err))
		case err != nil:
			e.unpublished = append(e.unpublished, err.Error())
		case ok:
			if text = strings.TrimSpace(text); text != "" {
				e.result.annotations = append(e.result.annotations, published{a.key, text})
			}
		}
	}
}

// step notes what an expression came to.
func (e *evaluator) step(field, came string, err error) {
	if !e.explains {
		return
	}
	if err != nil {
		came = err.Error()
	}
	e.steps = append(e.steps, field+": "+came)
}

func (e *evaluator) explainVariables() {
	if e.explains {
		e.steps = append(e.steps, shownVariables(e.Evaluation)...)
	}
}
