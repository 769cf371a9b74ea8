// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// variants compiles Webhooks, each once for what bindings say of it.
type variants struct {
	*diagnostics
	options *Options
	targets *targets
	count   uint32
}

// variant is a Webhook with its number among all of them.
type variant struct {
	*chain.Entry
	number uint32
}

// of returns the entry compiled under d; nil after a problem.
func (v *variants) of(e *entry, d dispatch) *variant {
	if known, ok := e.variants[d]; ok {
		return known
	}
	w, err := v.compile(e, d)
	if err != nil {
		v.problem(e.configuration.Problem(e.path.Child("clientConfig"), "", err.Error()))
		return nil
	}
	e.variants[d] = &variant{Entry: w, number: v.count}
	v.count++
	return e.variants[d]
}

// bind notes which bindings say what the variant is, for clusters that they select.
func (v *variant) bind(names []string) {
	if len(v.Bindings) == 0 {
		v.Bindings = names // shared: it is not changed
		return
	}
	for _, name := range names {
		if at, known := slices.BinarySearch(v.Bindings, name); !known {
			v.Bindings = slices.Insert(slices.Clip(v.Bindings), at, name)
		}
	}
}

// compile returns the webhook under one dispatch: as its configuration says, and then
// as bindings do.
func (v *variants) compile(e *entry, d dispatch) (*chain.Entry, error) {
	if e.policy != nil {
		return e.policy.entry(e, d), nil
	}
	url, serverName := address(&e.spec.ClientConfig)
	id := hook.ID{Configuration: e.configuration.Name(), Name: e.spec.Name}
	asks := &webhook.Hook{
		ID:      id,
		Version: firstVersion(e.spec.AdmissionReviewVersions),
		Wire:    webhook.Wire{Encoding: v.options.Encoding},
		Client:  v.options.Client,
	}
	w := made{
		Entry: &chain.Entry{
			ID:            id,
			Hook:          asks,
			PathID:        e.pathID,
			Matcher:       e.matcher,
			Spec:          e.matchSpec(),
			FailurePolicy: failurePolicyOf(*e.spec.FailurePolicy),
			SideEffects:   sideEffectsOf(*e.spec.SideEffects),
			Timeout:       e.timeout(),
			Needs:         chain.Needs{Authorizer: len(e.matcher.Authorizes()) > 0},
		},
		hook: asks,
		at:   transport.TargetSpec{URL: url, ServerName: serverName, CABundle: e.spec.ClientConfig.CABundle},
	}
	if r := e.spec.ReinvocationPolicy; r != nil {
		w.Reinvocation = *r == admissionregistrationv1.IfNeededReinvocationPolicy
	}
	for i, value := range d {
		if value != nil {
			bindingFields[i].apply(&w, value)
		}
	}
	target, err := v.targets.of(w.at)
	w.hook.Target = target
	return w.Entry, err
}

// made is what the rows of bindingFields write to.
type made struct {
	*chain.Entry
	hook *webhook.Hook
	at   transport.TargetSpec
}

// retry has failed calls repeated. Fail is what is left when that has not helped; a
// matchCondition is not repeated.
func (w *made) retry() {
	w.hook.Repeat.Failures = true
	w.FailurePolicy, w.Matcher, w.Spec.FailurePolicy = chain.Fail, w.Matcher.FailingClosed(), admissionregistrationv1.Fail
}

func failurePolicyOf(p admissionregistrationv1.FailurePolicyType) chain.FailurePolicy {
	if p == admissionregistrationv1.Ignore {
		return chain.Ignore
	}
	return chain.Fail
}

func sideEffectsOf(s admissionregistrationv1.SideEffectClass) chain.SideEffects {
	switch s {
	case admissionregistrationv1.SideEffectClassNone:
		return chain.SideEffectsNone
	case admissionregistrationv1.SideEffectClassNoneOnDryRun:
		return chain.SideEffectsNoneOnDryRun
	case admissionregistrationv1.SideEffectClassSome:
		return chain.SideEffectsSome
	}
	return chain.SideEffectsUnknown
}

// targets finds the Target of a spec: the known one where there is one, so
// that connections and health outlive the Snapshot.
type targets struct {
	known map[transport.Identity]*transport.Target // read-only
	found map[transport.Identity]*transport.Target
	used  []*transport.Target // in order of first use
}

func (t *targets) of(spec transport.TargetSpec) (*transport.Target, error) {
	id := spec.Identity()
	if target, ok := t.found[id]; ok {
		return target, nil
	}
	target, ok := t.known[id]
	if !ok {
		var err error
		if target, err = transport.NewTarget(spec); err != nil {
			return nil, err
		}
	}
	t.found[id] = target
	t.used = append(t.used, target)
	return target, nil
}

// ByIdentity returns the Targets by what they are.
func ByIdentity(targets []*transport.Target) map[transport.Identity]*transport.Target {
	table := make(map[transport.Identity]*transport.Target, len(targets))
	for _, t := range targets {
		table[t.Identity()] = t
	}
	return table
}
