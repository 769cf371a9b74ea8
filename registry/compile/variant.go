// SPDX-License-Identifier: Apache-2.0

package compile

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// variant is a Webhook with its number among all of them.
type variant struct {
	*chain.Entry
	number uint32
	order  int32
}

// made is what the rows of bindingFields write to.
type made struct {
	*chain.Entry
	at    transport.TargetSpec
	order int32
}

// compile returns the webhook under one dispatch: as its configuration says, and then
// as bindings do.
func (e *entry) compile(d dispatch, c *compiler) (*variant, error) {
	url, serverName := address(&e.spec.ClientConfig)
	w := made{
		Entry: &chain.Entry{
			Name:          e.spec.Name,
			Configuration: e.configuration.Meta.Name,
			PathID:        e.pathID,
			Rules:         e.spec.Rules,
			Matcher:       e.matcher,
			Spec:          e.matchSpec(),
			Bindings:      e.bindingNames,
			FailurePolicy: failurePolicyOf(*e.spec.FailurePolicy),
			SideEffects:   sideEffectsOf(*e.spec.SideEffects),
			Timeout:       e.timeout(),
			Version:       firstVersion(e.spec.AdmissionReviewVersions),
			Wire:          webhook.Wire{Encoding: c.Encoding},
		},
		at: transport.TargetSpec{URL: url, ServerName: serverName, CABundle: e.spec.ClientConfig.CABundle},
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
	w.Target = target
	number := c.chains.webhooks
	c.chains.webhooks++
	return &variant{Entry: w.Entry, number: number, order: w.order}, nil
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
