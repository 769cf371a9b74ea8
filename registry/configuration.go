// SPDX-License-Identifier: Apache-2.0

package registry

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// configuration is a Validating- or MutatingWebhookConfiguration of either
// version in one form: a mutating webhook has every field that a validating one
// has, and reinvocationPolicy.
type configuration struct {
	origin
	phase    chain.Phase
	beta     bool // v1beta1
	meta     metav1.ObjectMeta
	webhooks []admissionregistrationv1.MutatingWebhook
}

func validatingConfiguration(c *admissionregistrationv1.ValidatingWebhookConfiguration) configuration {
	out := configuration{phase: chain.Validating, meta: c.ObjectMeta}
	for i := range c.Webhooks {
		out.webhooks = append(out.webhooks, asMutating(&c.Webhooks[i]))
	}
	return out
}

func mutatingConfiguration(c *admissionregistrationv1.MutatingWebhookConfiguration) configuration {
	return configuration{phase: chain.Mutating, meta: c.ObjectMeta, webhooks: c.Webhooks}
}

func asMutating(w *admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    w.Name,
		ClientConfig:            w.ClientConfig,
		Rules:                   w.Rules,
		FailurePolicy:           w.FailurePolicy,
		MatchPolicy:             w.MatchPolicy,
		NamespaceSelector:       w.NamespaceSelector,
		ObjectSelector:          w.ObjectSelector,
		SideEffects:             w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions,
		MatchConditions:         w.MatchConditions,
	}
}
