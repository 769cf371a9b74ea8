// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
)

// claim is what webhooks that fail closed want alike: without an answer these
// requests are denied. All of it can be said in CEL but the labels of namespaces.
type claim struct {
	exact    bool
	rules    []admissionregistrationv1.RuleWithOperations
	names    requirements // on the namespace's name
	labels   requirements // on its other labels
	objects  requirements
	webhooks []*chain.Entry
}

// claimsOf returns the claims of the webhooks of a part, beyond the selectors that
// all of them share. While the chain of mutating webhooks runs, labels of the
// object change, and a request must not change between two entries: there
// objectSelectors are left out, which errs on the side of Fail.
func (p *part) claimsOf(webhooks []*chain.Entry) []*claim {
	var claims []*claim
	known := map[string]*claim{}
	for _, w := range webhooks {
		if w.FailurePolicy != chain.Fail || w.Mode != chain.Enforce {
			continue
		}
		c := &claim{exact: w.Matcher.IsExact()}
		c.names, c.labels = requirementsOf(namespaceSelector(w)).without(p.namespaces).byName()
		if objects := requirementsOf(objectSelector(w)); p.phase == chain.Validating && len(objects.without(p.objects)) > 0 {
			c.objects = objects // all of them, which must hold for one object, the new or the old
		}
		key := strings.Join([]string{c.names.key(), c.labels.key(), c.objects.key()}, "|")
		if c.exact {
			key += "|exact"
		}
		if known[key] == nil {
			known[key] = c
			claims = append(claims, c)
		}
		known[key].webhooks = append(known[key].webhooks, w)
	}
	for _, c := range claims {
		c.rules = union(c.webhooks)
	}
	return claims
}

// text says which requests are claimed, those in namespaces of other labels too.
func (c *claim) text(p *part) string {
	if c.claimsAll(p) {
		return always
	}
	some := make([]string, len(c.rules))
	for i := range c.rules {
		some[i] = c.selected(&c.rules[i])
	}
	return allOf(anyOf(some...), c.names.ofNamespace(), c.objects.ofObject())
}

// claimsAll reports whether everything that the part's rules select is claimed.
func (c *claim) claimsAll(p *part) bool {
	if len(c.names)+len(c.objects) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return !slices.ContainsFunc(c.rules, func(own admissionregistrationv1.RuleWithOperations) bool {
			if !c.exact {
				own.APIVersions = []string{"*"}
			} else if p.matchPolicy != admissionregistrationv1.Exact && !slices.Contains(own.APIVersions, "*") {
				return false // what the API server converts is not claimed
			}
			return covers(&own, &r)
		})
	})
}

// selected is the text of a rule. A webhook with matchPolicy Equivalent that wants
// a resource in some form gets every form of it, converted: all webhooks of a part
// list the same forms. So versions matter to Exact only.
func (c *claim) selected(r *admissionregistrationv1.RuleWithOperations) string {
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	places := []string{allOf(oneOf("request.resource.group", r.APIGroups), anyResource(r.Resources))}
	version := always
	if c.exact {
		version = oneOf("request.resource.version", r.APIVersions)
	} else {
		places = append(places, equivalents(r)...)
	}
	return allOf(oneOf("request.operation", operations), anyOf(places...), version, scope(*r.Scope))
}

// anyResource is the text of rules.resources; what has no subresource is one list.
func anyResource(patterns []string) string {
	var plain, some []string
	for _, pattern := range patterns {
		if strings.Contains(pattern, "/") {
			some = append(some, resource(pattern))
		} else {
			plain = append(plain, pattern)
		}
	}
	if len(plain) > 0 {
		some = append(some, allOf(oneOf("request.resource.resource", plain), noSubresource))
	}
	return anyOf(some...)
}

// equivalents are the resources of the rule in groups that it does not list.
func equivalents(r *admissionregistrationv1.RuleWithOperations) []string {
	var some []string
	for _, group := range r.APIGroups {
		for _, name := range match.EquivalentResources(group) {
			other, _ := match.EquivalentGroup(group, name)
			if slices.Contains(r.APIGroups, other) {
				continue
			}
			for _, pattern := range r.Resources {
				resourceName, sub, _ := strings.Cut(pattern, "/")
				if resourceName != "*" && resourceName != name {
					continue
				}
				if sub != "" {
					sub = "/" + sub
				}
				some = append(some, allOf(equals("request.resource.group", other), resource(name+sub)))
			}
		}
	}
	return some
}

func scope(s admissionregistrationv1.ScopeType) string {
	namespaced := allOf(inNamespace, negation(allOf(equals("request.resource.group", ""), ofNamespaces)))
	switch s {
	case admissionregistrationv1.NamespacedScope:
		return namespaced
	case admissionregistrationv1.ClusterScope:
		return negation(namespaced)
	}
	return always
}
