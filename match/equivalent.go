// SPDX-License-Identifier: Apache-2.0

package match

import "slices"

// cohabitant is a resource that Kubernetes stores once and serves from two
// groups: for matchPolicy Equivalent the two are one resource. These are the
// resources that kube-apiserver makes cohabit (NewStorageFactoryConfig); all its
// other resources, and custom resources, are equivalent to other versions of
// themselves only. Subresources are equivalent where their resources are.
type cohabitant struct {
	resource string
	groups   [2]string
}

func cohabitants() [8]cohabitant {
	return [...]cohabitant{
		{"daemonsets", [2]string{"apps", "extensions"}},
		{"deployments", [2]string{"apps", "extensions"}},
		{"events", [2]string{"", "events.k8s.io"}},
		{"ingresses", [2]string{"networking.k8s.io", "extensions"}},
		{"networkpolicies", [2]string{"networking.k8s.io", "extensions"}},
		{"podsecuritypolicies", [2]string{"policy", "extensions"}},
		{"replicasets", [2]string{"apps", "extensions"}},
		{"replicationcontrollers", [2]string{"", "extensions"}}, // for their scale
	}
}

// EquivalentGroup returns the other group from which Kubernetes serves the
// resource of this one.
func EquivalentGroup(group, resource string) (other string, ok bool) {
	for _, c := range cohabitants() {
		if c.resource != resource {
			continue
		}
		if i := slices.Index(c.groups[:], group); i >= 0 {
			return c.groups[1-i], true
		}
	}
	return "", false
}

// EquivalentResources returns the resources that Kubernetes serves from this
// group and from another one.
func EquivalentResources(group string) []string {
	var names []string
	for _, c := range cohabitants() {
		if slices.Contains(c.groups[:], group) {
			names = append(names, c.resource)
		}
	}
	return names
}

// groupPattern is a resourcePattern in one group.
type groupPattern struct {
	group   string
	pattern ResourcePattern
}

// equivalentPatterns returns what the rule's resources are called in groups that the rule
// does not list.
func (r *rule) equivalentPatterns() []groupPattern {
	if r.groups.any {
		return nil
	}
	var list []groupPattern
	for _, group := range r.groups.names {
		for _, name := range EquivalentResources(group) {
			other, _ := EquivalentGroup(group, name)
			if slices.Contains(r.groups.names, other) {
				continue
			}
			for _, p := range r.resources {
				if p.resource == wildcard || p.resource == name {
					list = append(list, groupPattern{other, ResourcePattern{name, p.sub}})
				}
			}
		}
	}
	return list
}
