// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// Configuration is a Validating- or MutatingWebhookConfiguration of either
// version in one form: a mutating webhook has every field that a validating one
// has, and reinvocationPolicy.
type Configuration struct {
	Origin
	Phase    chain.Phase
	Beta     bool // v1beta1
	Meta     metav1.ObjectMeta
	Webhooks []admissionregistrationv1.MutatingWebhook
}

func validatingConfiguration(c *admissionregistrationv1.ValidatingWebhookConfiguration) Configuration {
	out := Configuration{Phase: chain.Validating, Meta: c.ObjectMeta}
	for i := range c.Webhooks {
		out.Webhooks = append(out.Webhooks, asMutating(&c.Webhooks[i]))
	}
	return out
}

func mutatingConfiguration(c *admissionregistrationv1.MutatingWebhookConfiguration) Configuration {
	return Configuration{Phase: chain.Mutating, Meta: c.ObjectMeta, Webhooks: c.Webhooks}
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
