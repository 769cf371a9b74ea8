// SPDX-License-Identifier: Apache-2.0

package compile

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// variant is a Webhook with its number among all of them.
type variant struct {
	*chain.Entry
	number uint32
}

// made is what the rows of bindingFields write to.
type made struct {
	*chain.Entry
	hook *webhook.Hook
	at   transport.TargetSpec
}

// compile returns the webhook under one dispatch: as its configuration says, and then
// as bindings do.
func (e *entry) compile(d dispatch, c *compiler) (*variant, error) {
	url, serverName := address(&e.spec.ClientConfig)
	id := hook.ID{Configuration: e.configuration.Meta.Name, Name: e.spec.Name}
	asks := &webhook.Hook{
		ID:      id,
		Version: firstVersion(e.spec.AdmissionReviewVersions),
		Wire:    webhook.Wire{Encoding: c.Encoding},
		Client:  c.Client,
	}
	w := made{
		Entry: &chain.Entry{
			ID:            id,
			Hook:          asks,
			PathID:        e.pathID,
			Matcher:       e.matcher,
			Spec:          e.matchSpec(),
			Bindings:      e.bindingNames,
			FailurePolicy: failurePolicyOf(*e.spec.FailurePolicy),
			SideEffects:   sideEffectsOf(*e.spec.SideEffects),
			Timeout:       e.timeout(),
		},
		hook: asks,
		at:   transport.TargetSpec{URL: url, ServerName: serverName, CABundle: e.spec.ClientConfig.CABundle},
	}
	if r := e.spec.ReinvocationPolicy; r != nil {
		w.Reinvocation = *r == admissionregistrationv1.IfNeededReinvocationPolicy
	}
	for i, value := range d {
		if value != nil {
			bindingFields[i].apply(c, &w, value)
		}
	}
	target, err := c.targets.target(w.at)
	if err != nil {
		return nil, err
	}
	w.hook.Target = target
	number := c.chains.webhooks
	c.chains.webhooks++
	return &variant{Entry: w.Entry, number: number}, nil
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
