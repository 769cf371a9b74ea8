// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// SetDefaults sets what kube-apiserver sets for a webhook of either version
// (kubernetes pkg/apis/admissionregistration/{v1,v1beta1}/defaults.go). A v1
// webhook has no default for sideEffects and admissionReviewVersions.
func SetDefaults(w *admissionregistrationv1.MutatingWebhook, phase chain.Phase, beta bool) {
	if beta {
		setBetaDefaults(w)
	} else {
		setV1Defaults(w)
	}
	setDefault(&w.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&w.ObjectSelector, metav1.LabelSelector{})
	if phase == chain.Mutating {
		setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	}
	for i := range w.Rules {
		setDefault(&w.Rules[i].Scope, admissionregistrationv1.AllScopes)
	}
	if w.ClientConfig.Service != nil {
		setDefault(&w.ClientConfig.Service.Port, 443)
	}
}

func setV1Defaults(w *admissionregistrationv1.MutatingWebhook) {
	setDefault(&w.FailurePolicy, admissionregistrationv1.Fail)
	setDefault(&w.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&w.TimeoutSeconds, 10)
}

func setBetaDefaults(w *admissionregistrationv1.MutatingWebhook) {
	setDefault(&w.FailurePolicy, admissionregistrationv1.Ignore)
	setDefault(&w.MatchPolicy, admissionregistrationv1.Exact)
	setDefault(&w.TimeoutSeconds, 30)
	setDefault(&w.SideEffects, admissionregistrationv1.SideEffectClassUnknown)
	if len(w.AdmissionReviewVersions) == 0 {
		w.AdmissionReviewVersions = []string{"v1beta1"}
	}
}

func setDefault[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}
