// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RequestRule selects requests by what their user cannot choose: never by
// labels or by names of objects. It stands in the lists bypass and failOpen of
// configurations. A rule with several fields set selects requests that fit all
// of them; a field fits if any of its entries does. A rule without any field is
// invalid.
//
// A user does choose the namespace of a request, but only among those that the
// cluster's own authorization opens to them: request.namespace is what the API
// server authorized and will store the object in, not what the object says. A
// request about a Namespace itself has that Namespace's name as its namespace.
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) && size(self.namespaces) > 0 || has(self.users) && size(self.users) > 0 || has(self.groups) && size(self.groups) > 0 || has(self.serviceAccounts) && size(self.serviceAccounts) > 0 || has(self.resources) && size(self.resources) > 0 || has(self.operations) && size(self.operations) > 0 || has(self.extraKeys) && size(self.extraKeys) > 0",message="a rule without any field would select every request"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccounts) || self.serviceAccounts.all(s, s.matches('^[^/*]+/[^/]+$'))",message="serviceAccounts must be namespace/name or namespace/*"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || self.resources.all(s, s.matches('^[^/]*/[^/]+(/[^/]+)?$'))",message="resources must be group/resource or group/resource/subresource; the core group is empty: /pods"
type RequestRule struct {
	// Name is shown wherever the rule decided: annotation, log, metric. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespaces are names of request namespaces.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Namespaces []string `json:"namespaces,omitempty"`
	// Users are user names.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Users []string `json:"users,omitempty"`
	// Groups are names of user groups.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`
	// ServiceAccounts are "namespace/name" or "namespace/*".
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Resources are "group/resource" or "group/resource/subresource", the core
	// group being empty: "/pods", "apps/deployments/scale", "apps/*". They are what
	// the user sent, also where the API server has converted it.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	Resources []string `json:"resources,omitempty"`
	// Operations are CREATE, UPDATE, DELETE, CONNECT.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=CREATE;UPDATE;DELETE;CONNECT
	Operations []string `json:"operations,omitempty"`
	// ExtraKeys are keys of userInfo.extra; only failOpen rules may use them.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ExtraKeys []string `json:"extraKeys,omitempty"`
}
