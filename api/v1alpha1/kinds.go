// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kinds of group dispatcher.dev. Each field is defined here and
// nowhere else: manifests are decoded into these types, and from them controller-gen
// makes the CustomResourceDefinitions, which the schemas for editors are made of.
//
// A rule of a CustomResourceDefinition says what validation of a registry says of one
// object, as far as CEL can say it. An answer of the API server shows the value that a
// pattern or an enumeration refuses, and none that a rule refuses: whatever somebody may
// mistake for the place of a secret is checked by a rule of the object around it.
//
// +kubebuilder:object:generate=true
// +groupName=dispatcher.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The group and version of the kinds.
const (
	Group   = "dispatcher.dev"
	Version = "v1alpha1"
)

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	at := schema.GroupVersion{Group: Group, Version: Version}
	s.AddKnownTypes(at,
		&Cluster{}, &ClusterList{}, &WebhookBinding{}, &WebhookBindingList{},
		&WebhookConfiguration{}, &WebhookConfigurationList{}, &Plugin{}, &PluginList{},
		&Registry{}, &RegistryList{})
	metav1.AddToGroupVersion(s, at)
	return nil
}

// The types of conditions.
const (
	ConditionAccepted            = "Accepted"            // of every kind
	ConditionResolvedRefs        = "ResolvedRefs"        // of every kind
	ConditionProgrammed          = "Programmed"          // of every kind
	ConditionReachable           = "Reachable"           // of WebhookConfigurations
	ConditionNamespacesSynced    = "NamespacesSynced"    // of Clusters with a kubeconfig
	ConditionRegistrationCurrent = "RegistrationCurrent" // of Clusters
)

// Status is what is told of an object.
type Status struct {
	// Conditions of the object, by their types.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
