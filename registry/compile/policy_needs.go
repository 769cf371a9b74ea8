// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// needs is what a policy asks a cluster that has an API for.
func (p *policyPair) needs() (n chain.Needs) {
	if use, _ := p.compiled.Namespace(); use != celenv.NamespaceUnused {
		n.Objects = append(n.Objects, policy.Namespaces())
	}
	if resource, asks := p.params.Needed(); asks {
		n.Objects = append(n.Objects, resource)
	}
	asks, _ := p.compiled.Authorizes()
	n.Authorizer = asks != nil
	if p.merging != nil {
		p.merging.needs(&n)
	}
	return n
}

// unsupplied refuses what a policy needs that nobody supplies for a cluster that it serves.
func (p *policyPair) unsupplied(g *group) []manifest.Problem {
	use, at := p.compiled.Namespace()
	var without, labels []string
	for _, cluster := range g.clusters {
		switch cluster.Namespaces.(type) {
		case nobodyAsked: // it has an API
		case nil:
			without = append(without, "Cluster/"+cluster.Name)
		default:
			labels = append(labels, "Cluster/"+cluster.Name)
		}
	}
	var problems []manifest.Problem
	refuse := func(at *field.Path, format string, clusters []string) {
		problems = append(problems, p.policy.Problem(at, "namespaceObject", fmt.Sprintf(format, enumerate(clusters))))
	}
	if use != celenv.NamespaceUnused && len(without) > 0 {
		refuse(at, "is not known: neither spec.namespaces nor spec.kubeconfigFile is set in %s", without)
	}
	if resource, asks := p.params.Needed(); asks && len(without)+len(labels) > 0 {
		problems = append(problems, p.binding.Problem(paramsPath(), resource.GroupResource().String(), fmt.Sprintf(
			"are objects of the cluster that nobody can read: spec.kubeconfigFile is not set in %s", enumerate(slices.Sorted(slices.Values(slices.Concat(without, labels)))))))
	}
	if use == celenv.NamespaceWhole && len(labels) > 0 {
		refuse(at, "is not known but for metadata.name and metadata.labels, which spec.namespaces says: spec.kubeconfigFile is not set in %s", labels)
	}
	if p.merging != nil {
		problems = append(problems, p.merging.unsupplied(p.policy, g)...)
	}
	return problems
}
