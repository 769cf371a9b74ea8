// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
)

// union returns rules that select whatever any of the webhooks' rules selects, with
// rules that another one covers left out. The order is the webhooks', because the
// API server converts to what the first rule lists that fits. What webhooks with
// matchPolicy Exact list comes last: they want no conversion, and must not decide
// on that of others.
func union(webhooks []*chain.Entry) []admissionregistrationv1.RuleWithOperations {
	var all []admissionregistrationv1.RuleWithOperations
	for _, exact := range []bool{false, true} {
		for _, w := range webhooks {
			if w.Matcher.IsExact() == exact {
				for i := range w.Spec.Rules {
					all = add(all, normalized(&w.Spec.Rules[i]))
				}
			}
		}
	}
	return withoutCovered(all)
}

// add adds a rule behind all others, unless one of them covers it. Its operations
// join those of a rule that is equal but for them, where that changes no order.
func add(all []admissionregistrationv1.RuleWithOperations, r admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	if slices.ContainsFunc(all, func(earlier admissionregistrationv1.RuleWithOperations) bool { return covers(&earlier, &r) }) {
		return all
	}
	for i := range all {
		if sameButForOperations(&all[i], &r) && convertAlike(&r, all[i+1:]) {
			all[i].Operations = reduced(append(all[i].Operations, r.Operations...))
			return all
		}
	}
	return append(all, r)
}

// withoutCovered drops every rule that selects nothing that a later one does not,
// where that changes no order. Of rules that cover each other add has kept one.
func withoutCovered(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	var kept []admissionregistrationv1.RuleWithOperations
	for i := range rules {
		later := rules[i+1:]
		by := slices.IndexFunc(later, func(r admissionregistrationv1.RuleWithOperations) bool { return covers(&r, &rules[i]) })
		if by < 0 || !convertAlike(&rules[i], later[:by+1]) {
			kept = append(kept, rules[i])
		}
	}
	return kept
}

// convertAlike reports whether r may change places with all of the others.
func convertAlike(r *admissionregistrationv1.RuleWithOperations, others []admissionregistrationv1.RuleWithOperations) bool {
	return !slices.ContainsFunc(others, func(o admissionregistrationv1.RuleWithOperations) bool { return !match.ConvertsAlike(r, &o) })
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

func sameButForOperations(a, b *admissionregistrationv1.RuleWithOperations) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.APIVersions, b.APIVersions) &&
		slices.Equal(a.Resources, b.Resources) && *a.Scope == *b.Scope
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
