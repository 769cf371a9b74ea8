// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Objects is what the manifests say, decoded and not yet judged.
type Objects struct {
	Configurations []Configuration
	Clusters       []Cluster
	Bindings       []Binding
}

// Cluster is a Cluster object, and where it stands.
type Cluster struct {
	Origin
	ClusterObject
}

// Binding is a WebhookBinding object, and where it stands.
type Binding struct {
	Origin
	WebhookBindingObject
}

// Len returns how many objects there are.
func (o *Objects) Len() int { return len(o.Configurations) + len(o.Clusters) + len(o.Bindings) }

// Sort brings the objects into the order in which they take part, whatever
// files they came from.
func (o *Objects) Sort() {
	slices.SortStableFunc(o.Configurations, func(a, b Configuration) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Meta.Name, b.Meta.Name))
	})
	slices.SortStableFunc(o.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.Bindings, func(a, b Binding) int { return cmp.Compare(a.Name, b.Name) })
}

// Duplicates reports objects of one kind and name.
func (o *Objects) Duplicates() []Problem {
	var problems []Problem
	first := map[string]Origin{}
	for _, at := range o.origins() {
		other, seen := first[at.Object]
		if !seen {
			first[at.Object] = at
			continue
		}
		problems = append(problems, at.Problem(field.NewPath("metadata", "name"), "",
			fmt.Sprintf("the same object is also in %s", other.File)))
	}
	return problems
}

func (o *Objects) origins() []Origin {
	var all []Origin
	for i := range o.Configurations {
		all = append(all, o.Configurations[i].Origin)
	}
	for i := range o.Clusters {
		all = append(all, o.Clusters[i].Origin)
	}
	for i := range o.Bindings {
		all = append(all, o.Bindings[i].Origin)
	}
	return all
}
