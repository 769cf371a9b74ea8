// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/policy/schema"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// merging is into which kinds a policy merges apply configurations.
type merging struct {
	types   *schema.Types // of the sources; nil: it merges nothing
	unknown []unknownResource
	any     bool // a rule has a wildcard, or a subresource: the kind is found out by requests
}

// unknownResource is a resource of a rule whose kind no source knows.
type unknownResource struct {
	at   *field.Path
	name string
	of   []apischema.GroupVersion
}

// mergingOf returns what the rules of a policy with apply configurations select.
func mergingOf(rules []admissionregistrationv1.NamedRuleWithOperations, types *schema.Types) *merging {
	m := &merging{types: types}
	at := field.NewPath("spec", "matchConstraints", "resourceRules")
	for i := range rules {
		for j, resource := range rules[i].Resources {
			m.add(&rules[i].Rule, resource, at.Index(i).Child("resources").Index(j))
		}
	}
	return m
}

// add adds a resource, of which it is enough if the kind is known in one of the groups and
// versions: most of the others that a rule lists are of its other resources.
func (m *merging) add(r *admissionregistrationv1.Rule, resource string, at *field.Path) {
	if strings.ContainsAny(resource, "*/") {
		m.any = true
		return
	}
	unknown := unknownResource{at: at, name: resource}
	for _, group := range r.APIGroups {
		for _, version := range r.APIVersions {
			if group == "*" || version == "*" {
				m.any = true
				return
			}
			of := apischema.GroupVersion{Group: group, Version: version}
			if m.types.Has(of.WithResource(resource)) {
				return
			}
			unknown.of = append(unknown.of, of)
		}
	}
	m.unknown = append(m.unknown, unknown)
}

// needs adds what the cluster's API is asked for.
func (m *merging) needs(n *chain.Needs) {
	n.Types = m.any || len(m.unknown) > 0
	for _, resource := range m.unknown {
		n.GroupVersions = append(n.GroupVersions, resource.of...)
	}
}

// unsupplied refuses resources of whose kind nobody says how it is merged, for a cluster that
// the policy serves (H29 H30). With a wildcard that is found out for each request.
func (m *merging) unsupplied(policy manifest.Origin, g *group) (problems []manifest.Problem) {
	without := g.withoutAPI()
	if len(without) == 0 {
		return nil
	}
	for _, resource := range m.unknown {
		problems = append(problems, policy.Problem(resource.at, resource.name, fmt.Sprintf(
			"an ApplyConfiguration cannot be merged into it: its kind is not built in, no CustomResourceDefinition in a source defines it, and spec.kubeconfigFile is not set in %s. "+
				"Put the definition beside the policy, set that file, or use a JSONPatch", enumerate(without))))
	}
	return problems
}
