// SPDX-License-Identifier: Apache-2.0

package compile

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// variant is a Webhook with its number among all of them.
type variant struct {
	*chain.Entry
	number uint32
	order  int32
}

// compile returns the webhook under one dispatch.
func (e *entry) compile(d dispatch, endpoints []transport.EndpointSpec, targets *targetTable) (*chain.Entry, error) {
	target, err := targets.target(e.targetSpec(d, endpoints))
	if err != nil {
		return nil, err
	}
	w := &chain.Entry{
		Name:          e.spec.Name,
		Configuration: e.configuration.Meta.Name,
		PathID:        e.pathID,
		Rules:         e.spec.Rules,
		Matcher:       e.matcher,
		Spec:          e.matchSpec(),
		Bindings:      e.bindingNames,
		Target:        target,
		FailurePolicy: failurePolicyOf(*e.spec.FailurePolicy),
		SideEffects:   sideEffectsOf(*e.spec.SideEffects),
		Timeout:       e.timeout(),
		Mode:          d.mode,
		Stage:         d.stage,
		Compat:        d.compat,
		Version:       firstVersion(e.spec.AdmissionReviewVersions),
		Repeat:        transport.Repeat{NoHedge: d.hedge == chain.HedgeOff, Failures: d.retry, DenyWins: d.denyWins},
		Probe:         d.probe,
		Join:          d.join,
		Wire:          d.wire,
	}
	if d.retry {
		// What is left when repeating has not helped; a matchCondition is not repeated.
		w.FailurePolicy, w.Matcher, w.Spec.FailurePolicy = chain.Fail, e.matcher.FailingClosed(), admissionregistrationv1.Fail
	}
	if d.timeout != 0 {
		w.Timeout = d.timeout
	}
	if r := e.spec.ReinvocationPolicy; r != nil {
		w.Reinvocation = *r == admissionregistrationv1.IfNeededReinvocationPolicy
	}
	return w, nil
}

func (e *entry) targetSpec(d dispatch, endpoints []transport.EndpointSpec) transport.TargetSpec {
	url, serverName := address(&e.spec.ClientConfig)
	return transport.TargetSpec{
		URL:               url,
		ServerName:        serverName,
		CABundle:          e.spec.ClientConfig.CABundle,
		ClientCertificate: []byte(d.client.certificate),
		ClientKey:         []byte(d.client.key),
		BearerToken:       d.token,
		Endpoints:         endpoints,
		Breaker:           d.breaker,
	}
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
