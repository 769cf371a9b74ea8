// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebhookConfiguration is a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration under a name of our own: the API server in which it lies
// would itself call what stands in one of those. It is decoded, defaulted and compiled as
// one of them of version v1.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.spec.phase`
type WebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WebhookConfigurationSpec `json:"spec"`
	Status Status                   `json:"status,omitzero"`
}

// The phases.
const (
	PhaseMutating   = "Mutating"
	PhaseValidating = "Validating"
)

// WebhookConfigurationSpec is the spec of a WebhookConfiguration.
// +kubebuilder:validation:XValidation:rule="self.phase != 'Validating' || !has(self.webhooks) || self.webhooks.all(w, !has(w.reinvocationPolicy))",message="reinvocationPolicy is for mutating webhooks"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, has(w.clientConfig.url) != has(w.clientConfig.service))",message="each webhook needs exactly one of clientConfig.url and clientConfig.service"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, !has(w.clientConfig.url) || w.clientConfig.url.startsWith('https://'))",message="clientConfig.url must have the form https://host[:port][/path]"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, has(w.sideEffects) && w.sideEffects in ['None', 'NoneOnDryRun'])",message="sideEffects must be None or NoneOnDryRun"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, size(w.admissionReviewVersions) > 0)",message="admissionReviewVersions must include v1 or v1beta1"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, !has(w.timeoutSeconds) || w.timeoutSeconds >= 1 && w.timeoutSeconds <= 30)",message="timeoutSeconds must be between 1 and 30"
// +kubebuilder:validation:XValidation:rule="!has(self.webhooks) || self.webhooks.all(w, (!has(w.failurePolicy) || w.failurePolicy in ['Fail', 'Ignore']) && (!has(w.matchPolicy) || w.matchPolicy in ['Exact', 'Equivalent']) && (!has(w.reinvocationPolicy) || w.reinvocationPolicy in ['Never', 'IfNeeded']))",message="failurePolicy must be Fail or Ignore, matchPolicy Exact or Equivalent, reinvocationPolicy Never or IfNeeded"
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || !has(self.caConfigMapRef)",message="caSecretRef and caConfigMapRef exclude each other"
type WebhookConfigurationSpec struct {
	// Phase is Validating or Mutating. Required.
	// +kubebuilder:validation:Enum=Validating;Mutating
	Phase string `json:"phase"`
	// CASecretRef is a value of a Secret with the PEM certificates that webhooks are
	// verified against which have no caBundle. Default: the system's trust roots. Default
	// key: ca.crt.
	CASecretRef *SecretKey `json:"caSecretRef,omitempty"`
	// CAConfigMapRef is the same in a ConfigMap.
	CAConfigMapRef *ConfigMapKey `json:"caConfigMapRef,omitempty"`
	// Webhooks are those of a MutatingWebhookConfiguration of version v1. Those of the
	// phase Validating have no reinvocationPolicy.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks,omitempty"`
}

// WebhookConfigurationList is a list of WebhookConfigurations.
//
// +kubebuilder:object:root=true
type WebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WebhookConfiguration `json:"items"`
}
