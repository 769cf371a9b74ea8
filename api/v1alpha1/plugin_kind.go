// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plugin says that an admission plugin that is compiled in is on, in the clusters that it
// selects, with this configuration. There may be several of one plugin.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Plugin",type=string,JSONPath=`.spec.plugin`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
type Plugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PluginSpec `json:"spec"`
	Status Status     `json:"status,omitzero"`
}

// PluginSpec is the spec of a Plugin.
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || duration(self.timeout) >= duration('1ms') && duration(self.timeout) <= duration('30s')",message="timeout must be between 1ms and 30s"
type PluginSpec struct {
	// Plugin is the name of the plugin, such as AlwaysPullImages. "dispatcher version"
	// lists those that are compiled in. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Plugin string `json:"plugin"`
	// Configuration is the plugin's own.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// ClusterSelector selects Clusters by their labels. Default: all.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// Phases are those in which the plugin takes part, of Mutating and Validating.
	// Default: all that the plugin knows. Danger: a plugin that is not asked in the
	// validating phase does not see what webhooks have made of the object since.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=Mutating;Validating
	Phases []string `json:"phases,omitempty"`
	// Stage is Policy, Validating or Transactional, in the validating phase. Default:
	// Policy, before all webhooks.
	// +kubebuilder:validation:Enum="";Policy;Validating;Transactional
	Stage string `json:"stage,omitempty"`
	// Order moves the plugin within its stage: lower is first. Default: 0; equal numbers
	// stand in the order of names. Danger: a mutating plugin sees what those before it
	// made of the object.
	Order *int32 `json:"order,omitempty"`
	// Mode is Enforce, Warn or Shadow. Default: Enforce. Danger: Warn and Shadow let
	// through what the plugin denies.
	// +kubebuilder:validation:Enum="";Enforce;Warn;Shadow
	Mode string `json:"mode,omitempty"`
	// FailurePolicy is Fail or Ignore, for when the plugin has no answer. Default: Fail.
	// Danger: Ignore lets through what the plugin has not checked.
	// +kubebuilder:validation:Enum="";Fail;Ignore
	FailurePolicy admissionregistrationv1.FailurePolicyType `json:"failurePolicy,omitempty"`
	// Timeout of one call, a duration such as 250ms, from 1ms to 30s. Default: 10s.
	Timeout *Duration `json:"timeout,omitempty"`
	// ReinvocationPolicy is Never or IfNeeded: whether the plugin is asked again in the
	// mutating phase when the object has been changed after it. Default: IfNeeded.
	// +kubebuilder:validation:Enum="";Never;IfNeeded
	ReinvocationPolicy admissionregistrationv1.ReinvocationPolicyType `json:"reinvocationPolicy,omitempty"`
	// Rules are those of a webhook. Default: the plugin's own. Danger: what the rules do
	// not select is not checked.
	// +kubebuilder:validation:MaxItems=128
	Rules []admissionregistrationv1.RuleWithOperations `json:"rules,omitempty"`
	// MatchPolicy is that of a webhook. Default: Equivalent.
	// +kubebuilder:validation:Enum="";Exact;Equivalent
	MatchPolicy admissionregistrationv1.MatchPolicyType `json:"matchPolicy,omitempty"`
	// NamespaceSelector is that of a webhook. Default: every namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// ObjectSelector is that of a webhook. Default: every object.
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
	// MatchConditions are those of a webhook. Default: none.
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// PluginList is a list of Plugins.
//
// +kubebuilder:object:root=true
type PluginList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Plugin `json:"items"`
}
