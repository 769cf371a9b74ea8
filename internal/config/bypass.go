// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/exempt"
)

// Bypass names requests that pass without any webhook being called.
type Bypass struct {
	// Defaults adds the built-in rules: the API server's own writes, system
	// namespaces, leases, node heartbeats. Default: true. Danger: without them a webhook that fails closed
	// can keep a cluster from healing.
	Defaults bool `json:"defaults,omitempty"`
	// DispatcherNamespace is the namespace that the dispatcher runs in, if it
	// runs in a cluster that it serves; one more of the built-in rules. Default:
	// none. Danger: without it the dispatcher's own pods wait for the dispatcher.
	DispatcherNamespace string `json:"dispatcherNamespace,omitempty"`
	// Rules are further rules. Default: none. Danger: what they select is judged
	// by nobody.
	Rules []exempt.Rule `json:"rules,omitempty"`
}

func (b *Bypass) validate(at *field.Path) field.ErrorList {
	errs := exempt.Validate(b.Rules, at.Child("rules"), false)
	namespace := at.Child("dispatcherNamespace")
	if b.DispatcherNamespace == "" {
		return errs
	}
	if !b.Defaults {
		errs = append(errs, field.Forbidden(namespace, "belongs to the built-in rules, and bypass.defaults is false; write a rule"))
	}
	for _, why := range validation.IsDNS1123Label(b.DispatcherNamespace) {
		errs = append(errs, field.Invalid(namespace, b.DispatcherNamespace, why))
	}
	return errs
}

// rules returns the built-in rules, unless they are off, and the further ones.
func (b *Bypass) rules() []exempt.Rule {
	if !b.Defaults {
		return b.Rules
	}
	return append(exempt.DefaultBypass(b.DispatcherNamespace), b.Rules...)
}

// FailOpen names requests that are judged, and that no failing call blocks.
type FailOpen struct {
	// Defaults adds the built-in rules: how a node joins a cluster. Default: true.
	// Danger: without them no node joins while a webhook that fails closed is down.
	Defaults bool `json:"defaults,omitempty"`
	// Rules are further rules. Default: none. Danger: a policy whose webhook is
	// down does not hold for them.
	Rules []exempt.Rule `json:"rules,omitempty"`
}

// rules returns the built-in rules, unless they are off, and the further ones.
func (f *FailOpen) rules() []exempt.Rule {
	if !f.Defaults {
		return f.Rules
	}
	return append(exempt.DefaultFailOpen(), f.Rules...)
}
