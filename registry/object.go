// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// objects is what the manifests say, decoded and not yet judged.
type objects struct {
	configurations []configuration
	clusters       []clusterManifest
	bindings       []bindingManifest
}

type clusterManifest struct {
	origin
	ClusterObject
}

type bindingManifest struct {
	origin
	WebhookBindingObject
}

func (o *objects) len() int { return len(o.configurations) + len(o.clusters) + len(o.bindings) }

// sort brings the objects into the order in which they take part, whatever
// files they came from.
func (o *objects) sort() {
	slices.SortStableFunc(o.configurations, func(a, b configuration) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.meta.Name, b.meta.Name))
	})
	slices.SortStableFunc(o.clusters, func(a, b clusterManifest) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.bindings, func(a, b bindingManifest) int { return cmp.Compare(a.Name, b.Name) })
}

// duplicates reports objects of one kind and name.
func (o *objects) duplicates() []Problem {
	var problems []Problem
	first := map[string]origin{}
	for _, at := range o.origins() {
		other, seen := first[at.object]
		if !seen {
			first[at.object] = at
			continue
		}
		problems = append(problems, at.problem(field.NewPath("metadata", "name"), "",
			fmt.Sprintf("the same object is also in %s", other.file)))
	}
	return problems
}

func (o *objects) origins() []origin {
	var all []origin
	for i := range o.configurations {
		all = append(all, o.configurations[i].origin)
	}
	for i := range o.clusters {
		all = append(all, o.clusters[i].origin)
	}
	for i := range o.bindings {
		all = append(all, o.bindings[i].origin)
	}
	return all
}
