// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-dispatcher/dispatcher/exempt"
	outage "github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// exemptions are what the rules bypass and failOpen leave out, for each group of clusters
// with the same rules. Without a cluster they are those of the process.
func (l lint) exemptions(groups []*group) []outage.Exemption {
	if len(groups) == 0 {
		return []outage.Exemption{{Exempted: &outage.Exempted{Bypass: exempt.Compile(l.options.Bypass), FailOpen: exempt.Compile(l.options.FailOpen)}}}
	}
	list, shared := []outage.Exemption{}, map[string]*outage.Exempted{}
	for _, g := range groups {
		called, places := g.called(), map[*outage.Exempted]int{}
		for _, cluster := range g.clusters {
			key := fmt.Sprint(cluster.Bypass.Sources(), cluster.FailOpen.Sources())
			if shared[key] == nil {
				shared[key] = &outage.Exempted{Bypass: cluster.Bypass, FailOpen: cluster.FailOpen}
			}
			at, ok := places[shared[key]]
			if !ok {
				at = len(list)
				places[shared[key]] = at
				list = append(list, outage.Exemption{Exempted: shared[key], Webhooks: called})
			}
			list[at].Clusters = append(list[at].Clusters, cluster.Name)
		}
	}
	return list
}

// called returns the webhooks that the group's clusters call, by name.
func (g *group) called() map[string]bool {
	names := map[string]bool{}
	for _, list := range g.listed {
		for _, w := range list {
			if w.entry != nil {
				names[w.entry.name()] = true
			}
		}
	}
	return names
}

// trusted are the webhooks whose bindings name an authority for each of their endpoints,
// in every cluster that calls them.
func trusted(every []*entry) map[string]bool {
	names := map[string]bool{}
	for _, e := range every {
		if e.policy != nil {
			continue
		}
		bound := slices.ContainsFunc(e.bindings, func(b *binding) bool { return namesAuthority(b.says) })
		for d := range e.variants {
			bound = bound && namesAuthority(d)
		}
		names[e.name()] = bound
	}
	return names
}

// namesAuthority reports whether a dispatch has endpoints, each with its authority.
func namesAuthority(d dispatch) bool {
	for _, value := range d {
		if at, ok := value.(endpoints); ok {
			for _, e := range *at.specs {
				if len(e.CABundle) == 0 {
					return false
				}
			}
			return true
		}
	}
	return false
}

// bypassed warns about namespaces in which no webhook, policy or plugin decides, once for
// each rule of bypass that names them.
func (l lint) bypassed(every []*entry, groups []*group) {
	type told struct{ rule, namespaces string }
	seen := map[told]bool{}
	warn := func(rules []exempt.Rule, calls func(*entry) bool, where string) {
		for i := range rules {
			r := &rules[i]
			key := told{r.Name, strings.Join(r.Namespaces, ", ")}
			if seen[key] || !isNamespacesAlone(r) {
				continue
			}
			if names := deciding(every, r.Namespaces, calls); len(names) > 0 {
				seen[key] = true
				l.warn(manifest.Problem{Field: "bypass", Value: r.Name, Rule: outage.Bypassed, Reason: fmt.Sprintf(
					"requests in %s pass without any call%s: what these decide does not hold there: %s", key.namespaces, where, enumerate(names))})
			}
		}
	}
	if len(groups) == 0 {
		warn(l.options.Bypass, func(*entry) bool { return true }, "")
	}
	process := fmt.Sprint(l.options.Bypass)
	for _, g := range groups {
		called, looked := g.called(), map[string]bool{}
		for _, cluster := range g.clusters {
			rules, where := cluster.Bypass.Sources(), ""
			text := fmt.Sprint(rules)
			if looked[text] {
				continue
			}
			looked[text] = true
			if text != process {
				where = " in Cluster/" + cluster.Name
			}
			warn(rules, func(e *entry) bool { return called[e.name()] }, where)
		}
	}
}

// isNamespacesAlone reports whether the rule lets whatever happens in its namespaces pass.
func isNamespacesAlone(r *exempt.Rule) bool {
	return len(r.Namespaces) > 0 && len(r.Users)+len(r.Groups)+len(r.ServiceAccounts)+len(r.Resources)+len(r.Operations)+len(r.ExtraKeys) == 0
}

// deciding returns the names of webhooks and policies that select something in one of the
// namespaces, of which no other label is known than their name.
func deciding(every []*entry, namespaces []string, calls func(*entry) bool) (names []string) {
	for _, e := range every {
		if calls(e) && hasNamespaced(e.spec.Rules) && selectsOne(e.spec.NamespaceSelector, namespaces) && !slices.Contains(names, e.name()) {
			names = append(names, e.name())
		}
	}
	return names
}

func hasNamespaced(rules []admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return r.Scope == nil || *r.Scope != admissionregistrationv1.ClusterScope
	})
}

func selectsOne(s *metav1.LabelSelector, namespaces []string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && slices.ContainsFunc(namespaces, func(name string) bool {
		return s == nil || selector.Matches(labels.Set{corev1.LabelMetadataName: name})
	})
}
