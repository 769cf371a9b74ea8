// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Binding is a Policy with one binding, as a Hook. Bindings of one Policy share what it
// came to for a review.
type Binding struct {
	Policy, Name string
	Sum          string // over what the policy says
	Actions      []admissionregistrationv1.ValidationAction

	compiled *Policy
}

// NewBinding returns the Hook of a binding of p, with the names of both.
func NewBinding(p *Policy, policy, name string, actions []admissionregistrationv1.ValidationAction) *Binding {
	return &Binding{Policy: policy, Name: name, Sum: p.sum, Actions: actions, compiled: p}
}

// Validations are the expressions that must hold.
func (b *Binding) Validations() []string {
	list := make([]string, len(b.compiled.validations))
	for i := range b.compiled.validations {
		list[i] = strings.TrimSpace(b.compiled.validations[i].Expression)
	}
	return list
}

var errLate = errors.New("the policy was not evaluated by the deadline")

// Ask implements hook.Hook. It evaluates on the goroutine that asks: the cost of a policy
// is bounded, and its deadline is looked at in every loop.
func (b *Binding) Ask(_ context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	begin := time.Now()
	resp, err := b.decide(&q)
	var call *hook.CallError
	if errors.As(err, &call) {
		call.Elapsed = time.Since(begin)
	}
	to.Receive(resp, err)
	return nil
}

func (b *Binding) decide(q *hook.Question) (codec.Response, error) {
	if b.compiled.objects {
		done, err := q.Turn(len(q.Object.Raw) + len(q.Review.OldObject.Raw))
		if err != nil {
			return codec.Response{}, &hook.CallError{Cause: hook.Shed, Err: err}
		}
		defer done()
	}
	variables := q.Variables()
	if q.Shadow { // nobody waits for what a Shadow policy is evaluated with
		variables = &celenv.Variables{Input: variables.Input}
	}
	return b.answer(b.compiled.evaluate(variables, q.Deadline, false))
}

// answer is what the actions of the binding make of the result. A failure under
// failurePolicy Fail is treated like a denial: with action Warn it warns, and does not
// deny. One under Ignore is a CallError that nobody is denied for, unless something else
// denies: so it is seen.
func (b *Binding) answer(r *result) (resp codec.Response, err error) {
	var denials []decision
	for _, d := range r.decisions {
		for _, action := range b.Actions {
			switch action {
			case admissionregistrationv1.Deny:
				denials = append(denials, d)
			case admissionregistrationv1.Warn:
				resp.Warnings = append(resp.Warnings, fmt.Sprintf("Validation failed for %s: %s", b.title(), d.message))
			case admissionregistrationv1.Audit:
				resp.Annotations = append(resp.Annotations, codec.Annotation{Key: hook.FailureKey, Value: b.failure(d)})
			}
		}
	}
	for _, message := range r.unpublished { // whatever the actions are
		denials = append(denials, decision{reason: reasonInvalid, message: message})
	}
	for _, a := range r.annotations {
		resp.Annotations = append(resp.Annotations, codec.Annotation{Key: a.key, Value: strings.ToValidUTF8(a.value[:min(len(a.value), maxAnnotation)], "")})
	}
	switch {
	case len(denials) > 0:
		deny(&resp, denials)
	case r.late:
		return resp, &hook.CallError{Cause: hook.Timeout, Err: errLate}
	case len(r.ignored) > 0:
		return resp, &hook.CallError{Cause: hook.Evaluation, Err: joined(r.ignored)}
	default:
		resp.Allowed = true
	}
	return resp, nil
}

// maxAnnotation is the longest value of an audit annotation, in bytes.
const maxAnnotation = 10 << 10

func (b *Binding) title() string { return Title(b.Policy, b.Name) }

// Title names a policy with its binding in kube-apiserver's words.
func Title(policy, binding string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s'", policy, binding)
}

// failure is a decision as kube-apiserver audits it.
func (b *Binding) failure(d decision) string {
	text, _ := json.Marshal(struct {
		Message           string                                     `json:"message"`
		Policy            string                                     `json:"policy"`
		Binding           string                                     `json:"binding"`
		ExpressionIndex   int                                        `json:"expressionIndex"`
		ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
	}{d.message, b.Policy, b.Name, d.index, b.Actions}) // strings and numbers always have a text
	return string(text)
}

// deny denies with all that denies. Reason and code are of the first.
func deny(resp *codec.Response, denials []decision) {
	lines := make([]string, len(denials))
	for i, d := range denials {
		lines[i] = d.message
	}
	resp.Message = strings.Join(lines, "\n")
	resp.Reason = denials[0].reason
	resp.Code = codeOf(resp.Reason)
}

// reasonInvalid is the reason of what says no other.
const reasonInvalid = "Invalid"

func codeOf(reason string) int32 {
	return cmp.Or(map[string]int32{
		"Forbidden": http.StatusForbidden, "Unauthorized": http.StatusUnauthorized, "RequestEntityTooLarge": http.StatusRequestEntityTooLarge,
	}[reason], http.StatusUnprocessableEntity)
}

// Explain implements hook.Explainer: it says what each expression came to, and the
// variables that were asked for.
func (b *Binding) Explain(v *hook.View) (hook.Explanation, error) {
	r := b.compiled.evaluate(&celenv.Variables{Input: v.Variables().Input}, time.Time{}, true)
	x := hook.Explanation{Steps: r.steps}
	resp, err := b.answer(r)
	switch {
	case err != nil:
		x.Answer = "fails: " + err.Error()
	case resp.Allowed:
		x.Answer = "allows"
	default:
		x.Answer = "denies: " + resp.Message
	}
	return x, nil
}
