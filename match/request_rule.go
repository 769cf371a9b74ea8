// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/admission-dispatcher/dispatcher/codec"

// RequestRule selects requests by what their user cannot choose: never by
// labels or by names of objects. It stands in the lists bypass and failOpen of
// configurations. A rule with several fields set selects requests that fit all
// of them; a field fits if any of its entries does. A rule without any field is
// invalid.
type RequestRule struct {
	// Name is shown wherever the rule decided: annotation, log, metric. Required.
	Name string `json:"name"`
	// Namespaces are names of request namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	// Users are user names.
	Users []string `json:"users,omitempty"`
	// Groups are names of user groups.
	Groups []string `json:"groups,omitempty"`
	// ServiceAccounts are "namespace/name" or "namespace/*".
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Resources are "group/resource" or "group/resource/subresource", the core
	// group being empty: "/pods", "apps/deployments/scale", "apps/*".
	Resources []string `json:"resources,omitempty"`
	// Operations are CREATE, UPDATE, DELETE, CONNECT.
	Operations []string `json:"operations,omitempty"`
	// ExtraKeys are keys of userInfo.extra; only failOpen rules may use them.
	ExtraKeys []string `json:"extraKeys,omitempty"`
}

// RequestRules are compiled RequestRules, read-only.
type RequestRules struct{}

// CompileRequestRules compiles rules; problems are reported by ValidateRequestRules.
func CompileRequestRules(rules []RequestRule) RequestRules { panic("stub") }

// Match returns the name of the first rule that selects r.
func (rs *RequestRules) Match(r *codec.Review) (name string, ok bool) { panic("stub") }
