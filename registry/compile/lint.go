// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// lint adds warnings about what is valid and still likely to hurt. It never
// keeps a change from taking effect.
func (c *compiler) lint() {
	if len(c.problems) == 0 { // otherwise what is missing may be what is refused
		c.lintSelections()
	}
	for _, entries := range c.entries {
		for _, e := range entries {
			c.lintRules(e)
			c.lintTimeout(e)
		}
	}
}

func (c *compiler) lintSelections() {
	if len(c.objects.Clusters) == 0 && c.objects.Len() > 0 {
		c.warn(manifest.Problem{Reason: "there is no Cluster: nobody may call"})
	}
	for _, b := range c.bindings {
		c.lintBinding(b)
	}
}

// lintBinding warns about a binding that selects nothing (E11).
func (c *compiler) lintBinding(b *binding) {
	spec := field.NewPath("spec")
	for i, glob := range b.Spec.Webhooks {
		if !c.anyEntry(func(e *entry) bool { return globMatches(glob, e.configuration.Meta.Name, e.spec.Name) }) {
			c.warn(b.Problem(spec.Child("webhooks").Index(i), glob, "selects no webhook"))
		}
	}
	if b.selected == 0 && len(c.clusters) > 0 {
		c.warn(b.Problem(spec.Child("clusterSelector"), metav1.FormatLabelSelector(b.Spec.ClusterSelector), "selects no Cluster"))
	}
}

func (c *compiler) anyEntry(is func(*entry) bool) bool {
	return slices.ContainsFunc(c.entries[chain.Validating], is) || slices.ContainsFunc(c.entries[chain.Mutating], is)
}

// lintRules warns about what a webhook that fails closed can stop (E10).
func (c *compiler) lintRules(e *entry) {
	for i := range e.spec.Rules {
		r := &e.spec.Rules[i]
		at := e.path.Child("rules").Index(i)
		if isWide(r) {
			c.warn(e.configuration.Problem(at, "", "selects every resource of every group"))
		}
		if *e.spec.FailurePolicy != admissionregistrationv1.Fail {
			continue
		}
		if stopped := vital(e.spec, r); len(stopped) > 0 {
			c.warn(e.configuration.Problem(at, "", fmt.Sprintf(
				"with failurePolicy Fail an outage of this webhook stops %s", strings.Join(stopped, ", "))))
		}
	}
}

func isWide(r *admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(r.APIGroups, "*") && (selectsResource(r, "*") || selectsResource(r, "*/*"))
}

// vital names what a cluster cannot live without and the rule selects.
func vital(w *admissionregistrationv1.MutatingWebhook, r *admissionregistrationv1.RuleWithOperations) []string {
	var names []string
	if selects(r, "coordination.k8s.io", "leases") && selectsNamespace(w, "kube-node-lease") {
		names = append(names, "leases")
	}
	if selects(r, "", "nodes/status") {
		names = append(names, "node heartbeats")
	}
	if *r.Scope != admissionregistrationv1.ClusterScope && selectsNamespace(w, metav1.NamespaceSystem) {
		names = append(names, "writes in "+metav1.NamespaceSystem)
	}
	return names
}

func selects(r *admissionregistrationv1.RuleWithOperations, group, resource string) bool {
	inGroup := slices.Contains(r.APIGroups, "*") || slices.Contains(r.APIGroups, group)
	return inGroup && (selectsResource(r, resource) || selectsResource(r, "*/*") || wildcard(r, resource))
}

func selectsResource(r *admissionregistrationv1.RuleWithOperations, resource string) bool {
	return slices.Contains(r.Resources, resource)
}

// wildcard reports whether an entry with one wildcard includes the resource.
func wildcard(r *admissionregistrationv1.RuleWithOperations, resource string) bool {
	name, sub, isSub := strings.Cut(resource, "/")
	if !isSub {
		return selectsResource(r, "*") || selectsResource(r, name+"/*")
	}
	return selectsResource(r, name+"/*") || selectsResource(r, "*/"+sub)
}

// selectsNamespace reports whether the namespaceSelector selects a namespace of
// which only the name is known.
func selectsNamespace(w *admissionregistrationv1.MutatingWebhook, name string) bool {
	selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set{namespaceName: name})
}

// lintTimeout warns about webhooks that may take longer than their caller waits.
func (c *compiler) lintTimeout(e *entry) {
	var short []string
	for _, s := range e.served {
		for _, cluster := range s.group.clusters {
			if limit := c.waits(cluster); s.webhook.Timeout > limit {
				short = append(short, fmt.Sprintf("Cluster/%s (%s)", cluster.Name, limit))
			}
		}
	}
	if len(short) > 0 {
		c.warn(e.configuration.Problem(e.path.Child("timeoutSeconds"), e.timeout().String(),
			"is longer than the whole admission may take in "+enumerate(short)))
	}
}

// waits is how long the cluster waits for us, as far as that is known.
func (c *compiler) waits(cluster *chain.Cluster) time.Duration {
	if cluster.Timeout == 0 {
		return c.MaxTimeout
	}
	return min(cluster.Timeout, c.MaxTimeout)
}

// lintPaths warns about webhooks for which clusters register entries of their own,
// once for each pair that conflicts.
func (c *compiler) lintPaths(list []listed, of *chain.Chain, g *group) {
	if len(of.Paths) < 2 {
		return
	}
	main := slices.MaxFunc(of.Paths, func(a, b *chain.Path) int { return cmp.Compare(len(a.Positions), len(b.Positions)) })
	for _, p := range of.Paths {
		if p == main {
			continue
		}
		first, second := list[p.Positions[0]].entry, list[main.Positions[0]].entry
		for _, i := range p.Positions {
			conflicting := slices.IndexFunc(main.Positions, func(j int) bool { return of.Webhooks[i].Matcher.ConflictsWith(of.Webhooks[j].Matcher) })
			if conflicting >= 0 {
				first, second = list[i].entry, list[main.Positions[conflicting]].entry
				break
			}
		}
		if pair := [2]uint32{first.number, second.number}; !c.chains.apart[pair] {
			c.chains.apart[pair] = true
			c.warn(first.configuration.Problem(first.path.Child("rules"), "", fmt.Sprintf(
				"list other versions or groups of a resource than %s does: in Cluster/%s the two are registered apart, a further call for what both select",
				second.name(), g.clusters[0].Name)))
		}
	}
}
