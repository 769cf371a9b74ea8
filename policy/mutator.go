// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// mutated is what the mutations of a policy came to for one review.
type mutated struct {
	patch   []byte    // a JSON array of operations; nil: nothing is changed
	denial  *decision // a failure under failurePolicy Fail
	late    bool      // the deadline came before the end
	ignored []error   // failures that failurePolicy Ignore skips, without what they quote
	steps   []string  // for explain
	// unanswered: nothing of this counts without that answer of the cluster's authorizer.
	unanswered *celenv.Unanswered
}

// mutable is an object that may be mutated.
type mutable struct {
	object  []byte            // nil: there is none
	of      policyschema.Type // that it is merged by
	untyped error             // why there is none
}

// mutator evaluates the mutations of one policy over one review.
type mutator struct {
	*Mutations
	*celenv.Evaluation // over the object as mutated so far
	mutated
	mutable    // as mutated so far
	over       given
	operations int // of patch
	limits     jsonpatch.Limits
	explains   bool
}

// mutate evaluates the mutations in their order, each over the object as those before it
// have left it and with a budget of its own, as kube-apiserver does
// (k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go), and with each
// param all of them. One that fails is the last under failurePolicy Fail, and left out
// under Ignore. What this comes to is kept for the key.
func (m *Mutations) mutate(v *celenv.Variables, key any, params *Params, with found, o mutable, deadline time.Time, explains bool) *mutated {
	if len(with.params) == 0 {
		return &mutated{}
	}
	first := given{with.params[0], with.namespace}
	made := v.Once(key, m.scope, first.sees(), deadline, func(e *celenv.Evaluation) (any, bool) {
		run := &mutator{Mutations: m, Evaluation: e, mutable: o, limits: jsonpatch.DefaultLimits(), explains: explains}
		run.limits.Deadline = deadline
		if len(m.conditions) == 0 {
			e.Plain()
		}
		for run.over = range with.each() {
			if run.over != first {
				run.Evaluation = run.Next(nil, run.over.sees())
			}
			if explains {
				run.steps = append(run.steps, params.step(run.over.param)...)
			}
			if run.all(); run.ended() {
				break
			}
			run.explainVariables()
		}
		return &run.mutated, !run.late && run.unanswered == nil
	})
	return made.(*mutated) //nolint:forcetypeassert // it is what is made
}

// all evaluates the mutations with one param.
func (m *mutator) all() {
	holds, err := m.hold(m.Evaluation, m.step)
	if err != nil {
		m.failed(discreet(err), err)
	}
	if !holds || m.object == nil {
		return
	}
	for i := range m.list {
		operations, err := m.one(&m.list[i])
		m.step(fmt.Sprintf("mutations[%d]", i), cut(string(operations)), err)
		if err != nil {
			m.failed(discreet(err), err)
		}
		if m.ended() {
			return
		}
	}
}

// one evaluates a mutation, and returns the operations by which it has changed the object.
func (m *mutator) one(x *mutation) ([]byte, error) {
	m.Pass(celenv.PolicyBudget)
	value, err := m.Evaluate(x.expression)
	if err != nil {
		return nil, err
	}
	operations, err := m.operationsOf(x, value)
	if err != nil {
		return nil, err
	}
	changed, err := m.apply(operations)
	if !changed {
		return nil, err
	}
	return operations, nil
}

func (m *mutator) operationsOf(x *mutation, value celenv.Value) ([]byte, error) {
	if !x.configuration {
		return m.Operations(value, m.limits.PatchBytes)
	}
	configuration, err := m.Configuration(value, m.limits.PatchBytes)
	if err != nil {
		return nil, err
	}
	if m.untyped != nil {
		return nil, m.untyped
	}
	return merge(m.object, configuration, m.of)
}

// apply applies the operations of a mutation to the object. A test that does not hold
// leaves it as it is.
func (m *mutator) apply(operations []byte) (changed bool, err error) {
	patch, err := jsonpatch.Decode(operations, m.limits)
	if err != nil {
		return false, fmt.Errorf("JSON Patch: %w", err)
	}
	document, err := jsonpatch.Open(m.object, m.limits)
	if err != nil {
		return false, fmt.Errorf("failed to create JSON patch: %w", err)
	}
	changed, err = document.Apply(patch.Explicit(), m.limits)
	var said *jsonpatch.Error
	switch {
	case errors.As(err, &said) && said.Untrue:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("JSON Patch: %w", err)
	case !changed:
		return false, nil
	}
	object, err := document.Append(make([]byte, 0, len(m.object)+len(operations)), m.limits)
	if err != nil {
		return false, fmt.Errorf("JSON Patch: %w", err)
	}
	if m.operations+patch.Len() > m.limits.Operations || len(m.patch)+len(operations) > m.limits.PatchBytes {
		return false, fmt.Errorf("the mutations of the policy are more than %d operations, or than %d bytes", m.limits.Operations, m.limits.PatchBytes)
	}
	m.patch, m.object = jsonpatch.Concat(m.patch, operations), object
	m.operations += patch.Len()
	m.explainVariables()
	m.Evaluation = m.Next(&codec.Object{Raw: object}, m.over.sees())
	return true, nil
}

// failed decides a failure by the failure policy. said is err without what it quotes.
func (m *mutator) failed(said, err error) {
	switch {
	case errors.As(err, &m.unanswered):
	case errors.Is(err, celenv.ErrInterrupted), !m.limits.Deadline.IsZero() && !time.Now().Before(m.limits.Deadline):
		m.late = true
	case m.ignore:
		m.ignored = append(m.ignored, said)
	default:
		m.denial = &decision{reason: reasonInvalid, message: err.Error()}
		if _, unknown := errors.AsType[*unknownKind](err); unknown {
			m.denial.reason = reasonUnavailable
		}
	}
}

// ended reports whether nothing of the policy is evaluated any more.
func (m *mutator) ended() bool { return m.late || m.denial != nil || m.unanswered != nil }

// codeOfFailure is the code of a denial by a policy that mutates. A reason Invalid says
// another one, in kube-apiserver as well.
func codeOfFailure(reason string) int32 {
	if reason == reasonUnavailable {
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// reasonUnavailable is the reason where the kind of the object is not known.
const reasonUnavailable = "ServiceUnavailable"

// reasonForbidden is the reason where the binding is at fault.
const reasonForbidden = "Forbidden"

// step notes what an expression came to.
func (m *mutator) step(field, came string, err error) {
	switch {
	case !m.explains:
		return
	case err != nil:
		came = err.Error()
	case came == "":
		came = "changes nothing"
	}
	m.steps = append(m.steps, field+": "+came)
}

// explainVariables notes the variables over the object as it is now.
func (m *mutator) explainVariables() {
	if m.explains {
		m.steps = append(m.steps, shownVariables(m.Evaluation)...)
	}
}
