// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// checkNamespaces refuses a webhook whose namespaceSelector needs labels that
// nobody supplies for a cluster that it serves (E9).
func (c *compiler) checkNamespaces(e *entry, g *group) {
	keys := neededLabels(e.spec)
	if len(keys) == 0 {
		return
	}
	var without []string
	for _, cluster := range g.clusters {
		if cluster.Namespaces == nil {
			without = append(without, "Cluster/"+cluster.Name)
		}
	}
	if len(without) > 0 {
		c.problem(e.configuration.problem(e.path.Child("namespaceSelector"), strings.Join(keys, ", "),
			fmt.Sprintf("needs labels that nobody supplies: neither spec.namespaces nor spec.kubeconfigFile is set in %s", enumerate(without))))
	}
}

// neededLabels returns the labels of namespaces that the webhook's
// namespaceSelector asks for, but for the name that every namespace has.
// Cluster-scoped objects always pass the selector, and Namespaces are judged by
// their own labels.
func neededLabels(w *admissionregistrationv1.MutatingWebhook) []string {
	if !slices.ContainsFunc(w.Rules, mayBeNamespaced) {
		return nil
	}
	keys := map[string]bool{}
	for key := range w.NamespaceSelector.MatchLabels {
		keys[key] = true
	}
	for _, e := range w.NamespaceSelector.MatchExpressions {
		keys[e.Key] = true
	}
	delete(keys, namespaceName)
	return slices.Sorted(maps.Keys(keys))
}

func mayBeNamespaced(r admissionregistrationv1.RuleWithOperations) bool {
	return *r.Scope != admissionregistrationv1.ClusterScope
}

// enumerated is how many names a Problem spells out.
const enumerated = 5

func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), len(names)-enumerated)
}
