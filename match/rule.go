// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
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
type rule struct {
	scope      admissionregistrationv1.ScopeType
	operations [codec.Connect + 1]bool
	groups     set
	versions   set
	resources  []resourcePattern
}

// set is a set of names; any tells that it has "*".
type set struct {
	any   bool
	names []string
}

// resourcePattern is one entry of rules.resources. hasSub tells "pods/" from
// "pods".
type resourcePattern struct{ resource, sub string }

func compileRule(r *admissionregistrationv1.RuleWithOperations) rule {
	c := rule{scope: admissionregistrationv1.AllScopes, groups: compileSet(r.APIGroups), versions: compileSet(r.APIVersions)}
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
		resource, sub, _ := strings.Cut(text, "/")
		c.resources = append(c.resources, resourcePattern{resource, sub})
	}
	return c
}

func compileSet(names []string) set {
	s := set{names: names}
	for _, name := range names {
		s.any = s.any || name == "*"
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

func (p *resourcePattern) fits(resource, sub []byte) bool {
	return (p.resource == "*" || p.resource == string(resource)) && (p.sub == "*" || p.sub == string(sub))
}

// request is the part of a review that rules look at: under matchPolicy
// Equivalent a rule may select what was converted or what the user sent.
type request struct {
	review   *codec.Review
	resource *codec.GroupVersionResource
	sub      []byte
}

// selects reports whether the rule selects q. Unset scope means any scope.
func (r *rule) selects(q request) bool {
	return r.selectsAnyVersion(q) && r.versions.has(q.resource.Version)
}

func (r *rule) selectsAnyVersion(q request) bool {
	return r.operations[q.review.Operation] && r.groups.has(q.resource.Group) && r.fitsResource(q) && r.fitsScope(q)
}

func (r *rule) fitsResource(q request) bool {
	for i := range r.resources {
		if r.resources[i].fits(q.resource.Resource, q.sub) {
			return true
		}
	}
	return false
}

// fitsScope takes a Namespace as the cluster-scoped object that it is, although
// requests for it carry its name as their namespace.
func (r *rule) fitsScope(q request) bool {
	if r.scope == admissionregistrationv1.AllScopes {
		return true
	}
	namespaced := len(q.review.Namespace) > 0 && !isNamespaceItself(q)
	return namespaced == (r.scope == admissionregistrationv1.NamespacedScope)
}

func isNamespaceItself(q request) bool {
	return len(q.resource.Group) == 0 && string(q.resource.Resource) == "namespaces"
}

// selectRule returns the index of the first rule that selects the review. Where
// none does but one would in another version of the resource, it returns that
// one's index and found is false. Otherwise the index is -1.
func (m *Matcher) selectRule(r *codec.Review) (index int, found bool) {
	asSent := request{r, &r.RequestResource, r.RequestSubResource}
	if m.exact {
		return m.firstRule(asSent, (*rule).selects)
	}
	asMatched := request{r, &r.Resource, r.SubResource}
	for _, q := range []request{asMatched, asSent} {
		if i, ok := m.firstRule(q, (*rule).selects); ok {
			return i, true
		}
	}
	index, _ = m.firstRule(asMatched, (*rule).selectsAnyVersion)
	return index, false
}

func (m *Matcher) firstRule(q request, selects func(*rule, request) bool) (index int, found bool) {
	for i := range m.rules {
		if selects(&m.rules[i], q) {
			return i, true
		}
	}
	return -1, false
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
