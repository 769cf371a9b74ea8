// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// MutationBinding is a policy's Mutations with one binding, as a Hook.
type MutationBinding struct {
	Policy, Name string
	Sum          string // over what the policy says, and its params in the registry
	Params       string `json:",omitempty"` // what they are and where they come from; "": there are none

	compiled *Mutations
	params   *Params
	types    *policyschema.Types
}

// NewMutationBinding returns the Hook of a binding of m, with the names of both. params, if
// it is not nil, finds what m is evaluated with. types are of the kinds into which it merges
// configurations, if it has any.
func NewMutationBinding(m *Mutations, policy, name string, params *Params, types *policyschema.Types) *MutationBinding {
	b := &MutationBinding{Policy: policy, Name: name, Sum: m.sum, compiled: m, params: params, types: types}
	if params != nil {
		b.Sum, b.Params = b.Sum+params.sum, params.Kind()
	}
	return b
}

// MutationTitle names a policy that mutates with its binding in kube-apiserver's words.
func MutationTitle(policy, binding string) string {
	return fmt.Sprintf("policy '%s' with binding '%s'", policy, binding)
}

// Mutations are the expressions that change objects.
func (b *MutationBinding) Mutations() []string {
	list := make([]string, len(b.compiled.list))
	for i := range b.compiled.list {
		list[i] = strings.TrimSpace(b.compiled.list[i].text)
	}
	return list
}

// Ask implements hook.Hook.
func (b *MutationBinding) Ask(_ context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	answer(to, func() (codec.Response, error) { return b.decide(&q) })
	return nil
}

// decide evaluates until nothing is missing that the cluster's authorizer must answer, for
// which it waits as Binding does.
func (b *MutationBinding) decide(q *hook.Question) (codec.Response, error) {
	found, err := b.compiled.find(b.params, q)
	if err != nil {
		return b.unfound(err)
	}
	size := len(q.Object.Raw)
	if b.compiled.objects {
		size += len(q.Review.OldObject.Raw)
	}
	for _, p := range found.params {
		size += p.Size()
	}
	object := b.mutable(q)
	if shed, ok := errors.AsType[*hook.CallError](object.untyped); ok {
		return codec.Response{}, shed
	}
	for variables := variablesOf(q); ; {
		var m *mutated
		err := inTurn(q, size, func() {
			m = b.compiled.mutate(variables, b.key(), b.params, found, object, q.Deadline, false)
		})
		if err == nil && m.unanswered == nil {
			return b.answer(m)
		}
		if err == nil {
			err = q.Answer(variables, m.unanswered, q.Deadline, !q.Shadow)
		}
		if err != nil {
			return codec.Response{}, err
		}
	}
}

// key names what the policy came to. Bindings without params share it.
func (b *MutationBinding) key() any {
	if b.params == nil {
		return b.compiled
	}
	return b
}

// unfound is the answer where what the policy is evaluated with is not known.
func (b *MutationBinding) unfound(err error) (codec.Response, error) {
	if isAnswer(err) {
		return codec.Response{}, err
	}
	err = fmt.Errorf("failed to configure binding: %w", err)
	if b.compiled.ignore {
		return codec.Response{}, &hook.CallError{Cause: hook.Evaluation, Err: err}
	}
	return b.answer(&mutated{denial: &decision{reason: reasonForbidden, message: err.Error()}})
}

// mutable returns the object that may be mutated, with its type if configurations are merged
// into it. That of a CONNECT is its options, which nobody stores.
func (b *MutationBinding) mutable(q *hook.Question) (o mutable) {
	if q.Object.IsNull() || q.Review.Operation == codec.Connect {
		return o
	}
	o.object = q.Object.Raw
	if b.types != nil {
		o.of, o.untyped = typeOf(kindOf(q.Review), b.types, q)
	}
	return o
}

// answer is what the policy came to, as an answer. What failurePolicy Ignore skips is a
// CallError beside the patch of the other mutations.
func (b *MutationBinding) answer(m *mutated) (codec.Response, error) {
	switch {
	case m.late:
		return codec.Response{}, &hook.CallError{Cause: hook.Timeout, Err: errLate}
	case m.denial != nil:
		return codec.Response{Code: codeOfFailure(m.denial.reason), Reason: m.denial.reason, Message: m.denial.message}, nil
	}
	resp := codec.Response{Allowed: true, Patch: m.patch}
	if len(m.ignored) > 0 {
		return resp, &hook.CallError{Cause: hook.Evaluation, Err: joined(m.ignored)}
	}
	return resp, nil
}

// Explain implements hook.Explainer: it says what each mutation came to, and the variables
// that were asked for.
func (b *MutationBinding) Explain(v *hook.View) (hook.Explanation, error) {
	x := hook.Explanation{}
	q := explained(v)
	found, err := b.compiled.find(b.params, q)
	object := b.mutable(q)
	if b.compiled.depends(b.params, v, err) || errors.Is(object.untyped, hook.ErrNotAsked) {
		x.Answer = dependsOnCluster
		return x, nil
	}
	if err != nil {
		x.Answer = shownMutation(b.unfound(err))
		return x, nil
	}
	m := b.compiled.mutate(&celenv.Variables{Input: v.Variables().Input}, b.key(), b.params, found, object, time.Time{}, true)
	x.Steps = m.steps
	if m.unanswered != nil {
		x.Answer = m.unanswered.Error()
	} else {
		x.Answer = shownMutation(b.answer(m))
	}
	return x, nil
}

// shownMutation is an answer in words.
func shownMutation(resp codec.Response, err error) string {
	switch {
	case err != nil && resp.Patch != nil:
		return "fails: " + err.Error() + "; allows and changes the object: " + cut(string(resp.Patch))
	case err != nil:
		return "fails: " + err.Error()
	case !resp.Allowed:
		return "denies: " + resp.Message
	case resp.Patch != nil:
		return "allows and changes the object: " + cut(string(resp.Patch))
	}
	return "allows"
}
