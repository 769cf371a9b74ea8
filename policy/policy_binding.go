// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Binding is a Policy with one binding, as a Hook. Bindings of one Policy share what it
// came to for a review.
type Binding struct {
	Policy, Name string
	Sum          string // over what the policy says, and its params in the registry
	Params       string `json:",omitempty"` // what they are and where they come from; "": there are none
	Actions      []admissionregistrationv1.ValidationAction

	compiled *Policy
	params   *Params
}

// NewBinding returns the Hook of a binding of p, with the names of both. params, if it is
// not nil, finds what p is evaluated with.
func NewBinding(p *Policy, policy, name string, actions []admissionregistrationv1.ValidationAction, params *Params) *Binding {
	b := &Binding{Policy: policy, Name: name, Sum: p.sum, Actions: actions, compiled: p, params: params}
	if params != nil {
		b.Sum, b.Params = b.Sum+params.sum, params.Kind()
	}
	return b
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
	answer(to, func() (codec.Response, error) { return b.decide(&q) })
	return nil
}

// decide evaluates until nothing is missing that the cluster's authorizer must answer. What
// it waits for it waits for between two evaluations, outside of the turn and the lock.
func (b *Binding) decide(q *hook.Question) (codec.Response, error) {
	params, over := []*Param{nil}, given{}
	if b.params != nil { // most policies have none, and make nothing for them
		found, err := b.params.Find(q)
		if err != nil {
			return b.unconfigured(err)
		}
		params = found
	}
	if b.compiled.namespace != celenv.NamespaceUnused {
		namespace, err := NamespaceObject(q)
		if err != nil {
			return codec.Response{}, err
		}
		over.namespace = namespace
	}
	for variables := variablesOf(q); ; {
		var one [1]*result // which is what most policies come to
		results, wanted, err := b.evaluate(q, variables, params, over, one[:0])
		if err == nil && wanted == nil {
			return b.answer(results)
		}
		if err == nil {
			err = q.Answer(variables, wanted, q.Deadline, !q.Shadow)
		}
		if err != nil {
			return codec.Response{}, err
		}
	}
}

// evaluate evaluates the policy with each param, in the cluster's turn where what must be
// looked at is large, and appends the results to into. wanted is what it cannot be decided without.
func (b *Binding) evaluate(q *hook.Question, variables *celenv.Variables, params []*Param, over given, into []*result) (results []*result, wanted *celenv.Unanswered, err error) {
	if size := b.size(q.View, params); size > 0 {
		done, err := q.Turn(size)
		if err != nil {
			return nil, nil, &hook.CallError{Cause: hook.Shed, Err: err}
		}
		defer done()
	}
	results = into
	for _, over.param = range params {
		r := b.compiled.evaluate(variables, over, q.Deadline, false)
		if results = append(results, r); r.late || r.unanswered != nil {
			return results, r.unanswered, nil
		}
	}
	return results, nil, nil
}

// size is how much must be looked at, in bytes: the objects, once, and each param.
func (b *Binding) size(v *hook.View, params []*Param) (size int) {
	if b.compiled.objects {
		size = len(v.Object.Raw) + len(v.Review.OldObject.Raw)
	}
	for _, p := range params {
		size += p.Size()
	}
	return size
}

// unconfigured is the answer where the params are not known: a denial, whatever the
// actions are, unless failurePolicy Ignore skips it.
func (b *Binding) unconfigured(err error) (resp codec.Response, _ error) {
	if isAnswer(err) {
		return resp, err
	}
	err = fmt.Errorf("failed to configure binding: %w", err)
	if b.compiled.ignore {
		return resp, &hook.CallError{Cause: hook.Evaluation, Err: err}
	}
	deny(&resp, []decision{{reason: reasonInvalid, message: err.Error()}})
	return resp, nil
}

// answer is what the actions of the binding make of the results, of which there is one for
// each param. A failure under failurePolicy Fail is treated like a denial: with action Warn
// it warns, and does not deny. One under Ignore is a CallError that nobody is denied for,
// unless something else denies: so it is seen.
func (b *Binding) answer(results []*result) (resp codec.Response, err error) {
	var (
		denials []decision
		ignored []error
		late    bool
		said    audited
	)
	for _, r := range results {
		denials = b.act(r, &resp, &said, denials)
		ignored, late = append(ignored, r.ignored...), late || r.late
	}
	if len(results) > 1 { // most say the same of each param
		denials = distinct(denials)
		denials = denials[:min(len(denials), maxTold)]
	}
	switch {
	case len(denials) > 0:
		deny(&resp, denials)
	case late:
		return resp, &hook.CallError{Cause: hook.Timeout, Err: errLate}
	case len(ignored) > 0:
		return resp, &hook.CallError{Cause: hook.Evaluation, Err: joined(ignored)}
	default:
		resp.Allowed = true
	}
	return resp, nil
}

const (
	// maxTold is of how many params' denials, warnings and failures the answer tells: of
	// warnings and failures the dispatcher tells fewer.
	maxTold = 100
	// maxAnnotation is the longest value of an audit annotation, in bytes, and
	// maxAnnotations how long all of a binding may be: what those of one param can be.
	maxAnnotation  = 10 << 10
	maxAnnotations = 20 * maxAnnotation
)

// audited is how much audit annotations say so far.
type audited struct{ failures, bytes int }

// act adds to resp what one result comes to, and to denials what denies.
func (b *Binding) act(r *result, resp *codec.Response, said *audited, denials []decision) []decision {
	for _, d := range r.decisions {
		for _, action := range b.Actions {
			switch action {
			case admissionregistrationv1.Deny:
				denials = append(denials, d)
			case admissionregistrationv1.Warn:
				if len(resp.Warnings) < max(maxTold, len(r.decisions)) {
					resp.Warnings = append(resp.Warnings, inOneLine(fmt.Sprintf("Validation failed for %s: %s", b.title(), d.message)))
				}
			case admissionregistrationv1.Audit:
				if said.failures < maxTold {
					said.failures++
					resp.Annotations = append(resp.Annotations, codec.Annotation{Key: hook.FailureKey, Value: b.failure(d)})
				}
			}
		}
	}
	for _, message := range r.unpublished { // whatever the actions are
		denials = append(denials, decision{reason: reasonInvalid, message: message})
	}
	for _, a := range r.annotations {
		value := strings.ToValidUTF8(a.value[:min(len(a.value), maxAnnotation)], "")
		if said.bytes += len(value); said.bytes > maxAnnotations {
			resp.DroppedAnnotations++
			continue
		}
		resp.Annotations = append(resp.Annotations, codec.Annotation{Key: a.key, Value: value})
	}
	return denials
}

// distinct returns each decision of the list once, in the order in which they first come.
func distinct(list []decision) []decision {
	seen := make(map[decision]bool, len(list))
	return slices.DeleteFunc(list, func(d decision) bool {
		again := seen[d]
		seen[d] = true
		return again
	})
}

// inOneLine is a warning that a header can carry. kube-apiserver drops a warning with a
// control character, such as the line break of an expression that it quotes, its own and
// ours.
func inOneLine(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	return codec.CleanText(strings.Join(strings.Fields(text), " "))
}

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
	resp.Message = lines(denials)
	resp.Reason = denials[0].reason
	resp.Code = codeOf(resp.Reason)
}

// lines are the messages of the list, each on its own.
func lines(list []decision) string {
	messages := make([]string, len(list))
	for i, d := range list {
		messages[i] = d.message
	}
	return strings.Join(messages, "\n")
}

// reasonInvalid is the reason of what says no other.
const reasonInvalid = "Invalid"

func codeOf(reason string) int32 {
	return cmp.Or(map[string]int32{
		"Forbidden": http.StatusForbidden, "Unauthorized": http.StatusUnauthorized, "RequestEntityTooLarge": http.StatusRequestEntityTooLarge,
	}[reason], http.StatusUnprocessableEntity)
}
