// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
)

// What runs in managed clusters and adds terms to the namespaceSelector of every webhook,
// so that nobody's webhook is called for the cloud's own namespaces. Who removes them
// fights with it, so they are no difference, and what is applied keeps them.
//
//   - AKS, the admissions enforcer: control-plane, kubernetes.azure.com/managedby.
//   - GKE Autopilot: kubernetes.io/metadata.name, with kube-system and the namespaces of
//     GKE.
//
// Each only takes namespaces away, and only those of the cloud: a term that anybody else
// may have added is a difference.
var enforced = []struct {
	key, operator string
	value         func(string) bool // nil: there is none
}{
	{"control-plane", "DoesNotExist", nil},
	{"control-plane", "NotIn", func(v string) bool { return v == "true" }},
	{"kubernetes.azure.com/managedby", "NotIn", func(v string) bool { return v == "aks" }},
	{"kubernetes.io/metadata.name", "NotIn", isOfCloud},
}

// isOfCloud reports whether a namespace is one that clouds manage.
func isOfCloud(name string) bool {
	return name == "kube-system" || name == "kube-node-lease" || strings.HasPrefix(name, "gke-")
}

// isEnforced reports whether a term is what an enforcer adds.
func isEnforced(r requirement) bool {
	for _, e := range enforced {
		if r.key != e.key || r.operator != e.operator {
			continue
		}
		if e.value == nil {
			return true
		}
		return len(r.values) > 0 && !slices.ContainsFunc(r.values, func(v string) bool { return !e.value(v) })
	}
	return false
}

// beyond returns what has has and wants has not.
func beyond(has, wants []requirement) (extra []requirement) {
	for _, r := range has {
		if !slices.ContainsFunc(wants, r.equal) {
			extra = append(extra, r)
		}
	}
	return extra
}
