// SPDX-License-Identifier: Apache-2.0

package caller

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// ValidatingOf returns mutating webhooks as validating ones, which have the same
// fields but for the reinvocationPolicy.
func ValidatingOf(webhooks []admissionregistrationv1.MutatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	all := make([]admissionregistrationv1.ValidatingWebhook, len(webhooks))
	for i, w := range webhooks {
		all[i] = admissionregistrationv1.ValidatingWebhook{
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
	return all
}
