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

	// Generation is the name of the generation that most ready replicas serve.
	Generation string `json:"generation,omitempty"`
	// Accepted is the name of the generation that has every accepted object as it is now.
	// It is the same as Generation once all of it is served.
	Accepted string `json:"accepted,omitempty"`
	// Refused is how many objects are not served as they stand.
	Refused int32 `json:"refused,omitempty"`
	// Generations are those that ready replicas serve, hold back or have quarantined.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Generations []RegistryGeneration `json:"generations,omitempty"`
}

// RegistryGeneration is what the replicas say of a generation.
type RegistryGeneration struct {
	// Name of the generation.
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// Replicas is how many serve it.
	Replicas int32 `json:"replicas,omitempty"`
	// HeldBack is how many hold it back, because it has lost much of what is served.
	HeldBack int32 `json:"heldBack,omitempty"`
	// Lost is what it has lost. It is served when the annotation
	// dispatcher.dev/confirm-shrink of this object has its name.
	// +kubebuilder:validation:MaxItems=16
	Lost []string `json:"lost,omitempty"`
	// Quarantined is how many never serve it again.
	Quarantined int32 `json:"quarantined,omitempty"`
	// Reason is why it is quarantined.
	Reason string `json:"reason,omitempty"`
}

// RegistryList is a list of Registries.
//
// +kubebuilder:object:root=true
type RegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Registry `json:"items"`
}
