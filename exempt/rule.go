// SPDX-License-Identifier: Apache-2.0

// Package exempt says who is never asked, and whose failures never block: the rules
// bypass and failOpen, and the kinds that the API server sends to no webhook.
package exempt

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/codec"
)

// Rule is a rule of the lists bypass and failOpen.
type Rule = v1alpha1.RequestRule

// DefaultBypass are the rules without which a webhook that fails can keep a
// cluster from healing. dispatcherNamespace, if not empty, is where the
// dispatcher itself runs. What configures admission needs no rule
// (ConfiguresAdmission). Reviews of authentication and authorization have none: an
// API server that sends them (1.36 and earlier) lets its webhooks judge them, and so
// do we.
//
// system:apiserver is the API server's identity on its own loopback: at its start
// it writes bootstrap roles, priority classes and the kubernetes Service, and it
// ends if one of these writes is refused. Nobody else has that name without a
// certificate of the cluster's authority or the right to impersonate it.
func DefaultBypass(dispatcherNamespace string) []Rule {
	rules := []Rule{
		{Name: "apiserver", Users: []string{"system:apiserver"}},
		{Name: "system-namespaces", Namespaces: []string{"kube-system", "kube-node-lease"}},
		{Name: "leases", Resources: []string{"coordination.k8s.io/leases"}},
		{Name: "node-heartbeats", Groups: []string{"system:nodes"}, Resources: []string{"/nodes/status"}, Operations: []string{"UPDATE"}},
	}
	if dispatcherNamespace != "" {
		rules = append(rules, Rule{Name: "dispatcher-namespace", Namespaces: []string{dispatcherNamespace}})
	}
	return rules
}

// DefaultFailOpen are the rules without which no node joins a cluster while a
// webhook that fails closed is down: kubelets register nodes and ask for
// certificates, and the control plane signs them and makes the nodes ready. Their
// webhooks are called, and what they deny is denied.
func DefaultFailOpen() []Rule {
	nodes := []string{"/nodes", "/nodes/status", "certificates.k8s.io/certificatesigningrequests/approval", "certificates.k8s.io/certificatesigningrequests/status"}
	return []Rule{
		{
			Name:       "node-bootstrap",
			Groups:     []string{"system:nodes", "system:bootstrappers"},
			Resources:  []string{"/nodes", "storage.k8s.io/csinodes", "certificates.k8s.io/certificatesigningrequests"},
			Operations: []string{"CREATE", "UPDATE"},
		},
		{Name: "node-controllers", Groups: []string{"system:serviceaccounts:kube-system"}, Resources: nodes, Operations: []string{"UPDATE"}},
		{Name: "control-plane", Users: []string{"system:kube-controller-manager", "system:cloud-controller-manager"}, Resources: nodes, Operations: []string{"UPDATE"}},
	}
}

// Validate returns everything that is wrong with rules, which stand
// at path.
func Validate(rules []Rule, path *field.Path, allowExtraKeys bool) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range rules {
		r, at := &rules[i], path.Index(i)
		switch {
		case r.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "names the rule wherever it decides"))
		case names[r.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names[r.Name] = true
		errs = append(errs, validate(r, at, allowExtraKeys)...)
	}
	return errs
}

func validate(r *Rule, at *field.Path, allowExtraKeys bool) field.ErrorList {
	var errs field.ErrorList
	if isEmpty(r) {
		errs = append(errs, field.Required(at, "a rule without any field would select every request"))
	}
	for i, s := range r.ServiceAccounts {
		if namespace, name, ok := strings.Cut(s, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") || namespace == "*" {
			errs = append(errs, field.Invalid(at.Child("serviceAccounts").Index(i), s, "must be namespace/name or namespace/*"))
		}
	}
	for i, s := range r.Resources {
		if parts := strings.Split(s, "/"); len(parts) < 2 || len(parts) > 3 || slices.Contains(parts[1:], "") {
			errs = append(errs, field.Invalid(at.Child("resources").Index(i), s, "must be group/resource or group/resource/subresource; the core group is empty: /pods"))
		}
	}
	for i, s := range r.Operations {
		if parseOperation(s) == 0 {
			errs = append(errs, field.NotSupported(at.Child("operations").Index(i), s, []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}))
		}
	}
	if len(r.ExtraKeys) > 0 && !allowExtraKeys {
		errs = append(errs, field.Forbidden(at.Child("extraKeys"), "only failOpen rules may look at userInfo.extra"))
	}
	for _, list := range []struct {
		name    string
		entries []string
	}{{"namespaces", r.Namespaces}, {"users", r.Users}, {"groups", r.Groups}, {"extraKeys", r.ExtraKeys}} {
		for i, s := range list.entries {
			if s == "" {
				errs = append(errs, field.Required(at.Child(list.name).Index(i), ""))
			}
		}
	}
	return errs
}

func isEmpty(r *Rule) bool {
	return len(r.Namespaces)+len(r.Users)+len(r.Groups)+len(r.ServiceAccounts)+len(r.Resources)+len(r.Operations)+len(r.ExtraKeys) == 0
}

func parseOperation(s string) codec.Operation {
	for o := codec.Create; o <= codec.Connect; o++ {
		if o.String() == s {
			return o
		}
	}
	return 0
}
