// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfirmShrinkAnnotation of a Registry names the one generation that may be served
// although it has lost much of the one before.
const ConfirmShrinkAnnotation = "dispatcher.dev/confirm-shrink"

// Registry is what there is to tell of all objects together. It has no spec: it says
// what is served, and whoever may annotate it may confirm that much of it has gone. The
// one that counts is called "registry".
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,path=registries
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Generation",type=string,JSONPath=`.status.generation`
type Registry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Status RegistryStatus `json:"status,omitzero"`
}

// RegistryName is what the Registry is called that counts.
const RegistryName = "registry"

// RegistryStatus is the status of a Registry.
type RegistryStatus struct {
	Status `json:",inline"`

	// Generation is the name of the generation that is served.
	Generation string `json:"generation,omitempty"`
}

// RegistryList is a list of Registries.
//
// +kubebuilder:object:root=true
type RegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Registry `json:"items"`
}
