// SPDX-License-Identifier: Apache-2.0

package random

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// writer writes the configurations and admissions of one Case.
type writer struct {
	source
	theme []kind // what rules select and requests are about, mostly
	// anyForm has the rules select objects in any form, so that no two webhooks need
	// different ones, and once keeps webhooks from being called, and matched, a second
	// time.
	anyForm, once bool
	// known has requests come about namespaces that there are: an API server with
	// selectors in its registration looks them up itself.
	known bool
	// conditioned has every webhook have matchConditions, of all their forms.
	conditioned bool
}

// configurations returns low to high of them, unsorted: what counts is their order
// by name. Names of webhooks repeat over configurations, as they do in clusters, and
// some are so long that an audit annotation's key has no room for them.
func (w *writer) configurations(mutating bool, low, high int) []Configuration {
	var all []Configuration
	for _, name := range some(w.source, low, high, "zeta", "alpha", "mid", "a.b", "a-b", "10", "9") {
		c := Configuration{Name: prefixOf(mutating) + name}
		for _, webhook := range some(w.source, 1, 3, "z.example.com", "a.example.com", "policy.corp.example.org",
			"a-rather-long-name-of-a-webhook.of-a-rather-long.example.org") {
			c.Webhooks = append(c.Webhooks, Webhook{w.webhook(webhook), w.script(mutating)})
		}
		all = append(all, c)
	}
	return all
}

func prefixOf(mutating bool) string {
	if mutating {
		return "m-"
	}
	return "v-"
}

func (w *writer) webhook(name string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:              name,
		Rules:             w.rules(),
		FailurePolicy:     pointer(pick(w.source, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)),
		MatchPolicy:       pointer(pick(w.source, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)),
		NamespaceSelector: w.selector(corev1.LabelMetadataName),
		ObjectSelector:    w.selector(),
		SideEffects:       pointer(w.sideEffects()),
		TimeoutSeconds:    pointer(int32(30)),
		AdmissionReviewVersions: pick(w.source, []string{"v1"}, []string{"v1"}, []string{"v1beta1"},
			[]string{"v1", "v1beta1"}, []string{"v1beta1", "v1"}, []string{unknownVersion, "v1"}),
		ReinvocationPolicy: pointer(w.reinvocation()),
		MatchConditions:    w.matchConditions(),
	}
}

func (w *writer) matchConditions() []admissionregistrationv1.MatchCondition {
	if conditions := w.conditions(); !w.once {
		return conditions
	}
	return nil
}

func (w *writer) reinvocation() admissionregistrationv1.ReinvocationPolicyType {
	p := pick(w.source, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)
	if w.once {
		p = admissionregistrationv1.NeverReinvocationPolicy
	}
	return p
}

// unknownVersion is a review version of the future.
const unknownVersion = "v7"

func (w *writer) sideEffects() admissionregistrationv1.SideEffectClass {
	if w.percent(85) {
		return pick(w.source, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	return pick(w.source, admissionregistrationv1.SideEffectClassSome, admissionregistrationv1.SideEffectClassUnknown)
}
