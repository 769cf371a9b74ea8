// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/registry"
)

// union returns rules that select whatever any of the webhooks' rules selects,
// sorted, with operations of equal rules joined and rules that another one
// covers left out.
func union(webhooks []*registry.Webhook) []admissionregistrationv1.RuleWithOperations {
	byRule := map[string]*admissionregistrationv1.RuleWithOperations{}
	for _, w := range webhooks {
		for i := range w.Rules {
			add(byRule, normalized(&w.Rules[i]))
		}
	}
	keys := make([]string, 0, len(byRule))
	for key := range byRule {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var all []admissionregistrationv1.RuleWithOperations
	for _, key := range keys {
		all = append(all, *byRule[key])
	}
	return withoutCovered(all)
}

// normalized returns a copy with sorted lists, each reduced to "*" where it has it.
func normalized(r *admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.AllScopes
	if r.Scope != nil {
		scope = *r.Scope
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: reduced(r.Operations),
		Rule: admissionregistrationv1.Rule{
			APIGroups:   reduced(r.APIGroups),
			APIVersions: reduced(r.APIVersions),
			Resources:   reducedResources(r.Resources),
			Scope:       &scope,
		},
	}
}

func reduced[S ~string](list []S) []S {
	if slices.Contains(list, "*") {
		return []S{"*"}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// reducedResources keeps "*" beside subresources: it stands for resources alone.
func reducedResources(list []string) []string {
	if slices.Contains(list, "*/*") {
		return []string{"*/*"}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// add adds a rule, or its operations to the rule that is equal but for them.
func add(byRule map[string]*admissionregistrationv1.RuleWithOperations, r admissionregistrationv1.RuleWithOperations) {
	key := strings.Join([]string{strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), strings.Join(r.APIVersions, ","), string(*r.Scope)}, "|")
	if known := byRule[key]; known != nil {
		known.Operations = reduced(append(known.Operations, r.Operations...))
		return
	}
	byRule[key] = &r
}

// withoutCovered drops every rule that selects nothing that another does not.
func withoutCovered(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	return slices.DeleteFunc(slices.Clone(rules), func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rules, func(other admissionregistrationv1.RuleWithOperations) bool {
			return compare(&r, &other) != 0 && covers(&other, &r)
		})
	})
}

func compare(a, b *admissionregistrationv1.RuleWithOperations) int {
	return cmp.Or(
		slices.Compare(a.Operations, b.Operations), slices.Compare(a.APIGroups, b.APIGroups),
		slices.Compare(a.APIVersions, b.APIVersions), slices.Compare(a.Resources, b.Resources), cmp.Compare(*a.Scope, *b.Scope),
	)
}

// covers reports whether a selects all that b does.
func covers(a, b *admissionregistrationv1.RuleWithOperations) bool {
	return (*a.Scope == admissionregistrationv1.AllScopes || *a.Scope == *b.Scope) &&
		hasAll(a.Operations, b.Operations) && hasAll(a.APIGroups, b.APIGroups) && hasAll(a.APIVersions, b.APIVersions) &&
		coversResources(a.Resources, b.Resources)
}

func hasAll[S ~string](list, wanted []S) bool {
	if slices.Contains(list, "*") {
		return true
	}
	for _, w := range wanted {
		if !slices.Contains(list, w) {
			return false
		}
	}
	return true
}

// coversResources knows that "*" is not "*/*", and that "pods/*" holds "pods".
func coversResources(list, wanted []string) bool {
	for _, w := range wanted {
		resource, sub, hasSub := strings.Cut(w, "/")
		candidates := []string{w, "*/*", resource + "/*"}
		if !hasSub {
			candidates = append(candidates, "*")
		} else if sub != "*" {
			candidates = append(candidates, "*/"+sub)
		}
		if !slices.ContainsFunc(candidates, func(c string) bool { return slices.Contains(list, c) }) {
			return false
		}
	}
	return true
}
