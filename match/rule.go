// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// A rule selects a review if its scope, one of its operations, one of its
// groups, one of its versions and one of its resources fit. "*" fits any of
// them. A resource is "pods" for the resource alone, "pods/log" for one
// subresource, "pods/*" for the resource with all its subresources, "*/scale"
// for one subresource of all resources, "*" for all resources without
// subresources, "*/*" for everything.
//
// Unset scope is any scope. Namespaced are requests with a namespace, but for
// those about Namespaces themselves; all others are Cluster.
type rule struct {
	scope      admissionregistrationv1.ScopeType
	operations [codec.Connect + 1]bool
	groups     set
	versions   set
	resources  []ResourcePattern
	// equivalents are the resources in other groups that Kubernetes takes for the
	// same; nil for matchPolicy Exact.
	equivalents []groupPattern
	names       []string // of the objects; none: any
	form        string   // see formOf
}

const wildcard = "*"

// set is a set of names; any tells that it has "*".
type set struct {
	any   bool
	names []string
}

// isCore reports whether the set has the core group and nothing else.
func (s *set) isCore() bool { return !s.any && len(s.names) == 1 && s.names[0] == "" }

// ResourcePattern is one entry of rules.resources; sub is empty for the resource
// alone.
type ResourcePattern struct{ resource, sub string }

// ParseResource returns the pattern that text spells, such as pods/log.
func ParseResource(text string) ResourcePattern {
	resource, sub, _ := strings.Cut(text, "/")
	return ResourcePattern{resource, sub}
}

func compileRule(r *admissionregistrationv1.RuleWithOperations, names []string, exact bool) rule {
	c := rule{scope: admissionregistrationv1.AllScopes, groups: compileSet(r.APIGroups), versions: compileSet(r.APIVersions), names: names}
	if r.Scope != nil {
		c.scope = *r.Scope
	}
	for _, op := range r.Operations {
		for o := codec.Create; o <= codec.Connect; o++ {
			if op == admissionregistrationv1.OperationAll || string(op) == o.String() {
				c.operations[o] = true
			}
		}
	}
	for _, text := range r.Resources {
		c.resources = append(c.resources, ParseResource(text))
	}
	if !exact {
		c.equivalents = c.equivalentPatterns()
	}
	c.form = formOf(&c)
	return c
}

func compileSet(names []string) set {
	s := set{names: names}
	for _, name := range names {
		s.any = s.any || name == wildcard
	}
	return s
}

func (s *set) has(name []byte) bool {
	if s.any {
		return true
	}
	for _, n := range s.names {
		if n == string(name) {
			return true
		}
	}
	return false
}

// Fits reports whether p selects the resource, or its subresource sub.
func (p *ResourcePattern) Fits(resource, sub []byte) bool {
	return (p.resource == wildcard || p.resource == string(resource)) && (p.sub == wildcard || p.sub == string(sub))
}

// request is the part of a review that rules look at.
type request struct {
	operation codec.Operation
	resource  *codec.GroupVersionResource
	sub       []byte
	namespace []byte
	name      []byte // empty for one that the API server has yet to make
	anyName   bool   // it stands for requests of all names
}

// requestSent is the request as the user sent it.
func requestSent(r *codec.Review) request {
	return request{operation: r.Operation, resource: &r.RequestResource, sub: r.RequestSubResource, namespace: r.Namespace, name: r.Name}
}

// requestMade is the request that the API server made of it.
func requestMade(r *codec.Review) request {
	return request{operation: r.Operation, resource: &r.Resource, sub: r.SubResource, namespace: r.Namespace, name: r.Name}
}

// selects reports whether the rule selects q.
func (r *rule) selects(q request) bool {
	return r.operations[q.operation] && r.versions.has(q.resource.Version) && r.groups.has(q.resource.Group) && r.fitsResource(q) && r.fitsScope(q) && r.fitsName(q)
}

// selectsEquivalent reports whether the rule selects q, or would in another
// version or in a group that is equivalent.
func (r *rule) selectsEquivalent(q request) bool {
	return r.operations[q.operation] && (r.groups.has(q.resource.Group) && r.fitsResource(q) || r.fitsEquivalent(q)) && r.fitsScope(q) && r.fitsName(q)
}

func (r *rule) fitsEquivalent(q request) bool {
	for i := range r.equivalents {
		e := &r.equivalents[i]
		if e.group == string(q.resource.Group) && e.pattern.Fits(q.resource.Resource, q.sub) {
			return true
		}
	}
	return false
}

func (r *rule) fitsResource(q request) bool {
	for i := range r.resources {
		if r.resources[i].Fits(q.resource.Resource, q.sub) {
			return true
		}
	}
	return false
}

// fitsName goes by the request's name and not by the object's.
func (r *rule) fitsName(q request) bool {
	if len(r.names) == 0 || q.anyName {
		return true
	}
	for _, name := range r.names {
		if name == string(q.name) {
			return true
		}
	}
	return false
}

// fitsScope goes by the request's namespace and not by the object's.
func (r *rule) fitsScope(q request) bool {
	switch r.scope {
	case admissionregistrationv1.AllScopes:
		return true
	case admissionregistrationv1.NamespacedScope:
		return q.isNamespaced()
	case admissionregistrationv1.ClusterScope:
		return !q.isNamespaced()
	}
	return false
}

// isNamespaced takes a Namespace as the cluster-scoped object that it is, although
// requests for it carry its name as their namespace.
func (q *request) isNamespaced() bool {
	itself := len(q.resource.Group) == 0 && string(q.resource.Version) == "v1" && string(q.resource.Resource) == namespacesResource
	return len(q.namespace) > 0 && !itself
}

// RuleString says a rule in words.
func RuleString(r admissionregistrationv1.RuleWithOperations) string {
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	groups := make([]string, len(r.APIGroups))
	for i, g := range r.APIGroups {
		groups[i] = g
		if g == "" {
			groups[i] = `""`
		}
	}
	text := fmt.Sprintf("%s of %s in %s/%s", strings.Join(operations, ","), strings.Join(r.Resources, ","),
		strings.Join(groups, ","), strings.Join(r.APIVersions, ","))
	if r.Scope != nil && *r.Scope != admissionregistrationv1.AllScopes {
		text += " (" + string(*r.Scope) + ")"
	}
	return text
}

// cohabitant is a resource that Kubernetes stores once and serves from two
// groups: for matchPolicy Equivalent the two are one resource. These are the
// resources that kube-apiserver makes cohabit (NewStorageFactoryConfig); all its
// other resources, and custom resources, are equivalent to other versions of
// themselves only. Subresources are equivalent where their resources are.
type cohabitant struct {
	resource string
	groups   [2]string
}

func cohabitants() [8]cohabitant {
	return [...]cohabitant{
		{"daemonsets", [2]string{"apps", "extensions"}},
		{"deployments", [2]string{"apps", "extensions"}},
		{"events", [2]string{"", "events.k8s.io"}},
		{"ingresses", [2]string{"networking.k8s.io", "extensions"}},
		{"networkpolicies", [2]string{"networking.k8s.io", "extensions"}},
		{"podsecuritypolicies", [2]string{"policy", "extensions"}},
		{"replicasets", [2]string{"apps", "extensions"}},
		{"replicationcontrollers", [2]string{"", "extensions"}}, // for their scale
	}
}

// EquivalentGroup returns the other group from which Kubernetes serves the
// resource of this one.
func EquivalentGroup(group, resource string) (other string, ok bool) {
	for _, c := range cohabitants() {
		if c.resource != resource {
			continue
		}
		if i := slices.Index(c.groups[:], group); i >= 0 {
			return c.groups[1-i], true
		}
	}
	return "", false
}

// EquivalentResources returns the resources that Kubernetes serves from this
// group and from another one.
func EquivalentResources(group string) []string {
	var names []string
	for _, c := range cohabitants() {
		if slices.Contains(c.groups[:], group) {
			names = append(names, c.resource)
		}
	}
	return names
}

// groupPattern is a ResourcePattern in one group.
type groupPattern struct {
	group   string
	pattern ResourcePattern
}

// equivalentPatterns returns what the rule's resources are called in groups that the rule
// does not list.
func (r *rule) equivalentPatterns() []groupPattern {
	if r.groups.any {
		return nil
	}
	var list []groupPattern
	for _, group := range r.groups.names {
		for _, name := range EquivalentResources(group) {
			other, _ := EquivalentGroup(group, name)
			if slices.Contains(r.groups.names, other) {
				continue
			}
			for _, p := range r.resources {
				if p.resource == wildcard || p.resource == name {
					list = append(list, groupPattern{other, ResourcePattern{name, p.sub}})
				}
			}
		}
	}
	return list
}
