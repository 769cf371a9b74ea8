// SPDX-License-Identifier: Apache-2.0

package compile

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// authorizers gives each cluster in which somebody may ask the authorizer the one who asks,
// and returns them. A webhook that waits for its Target keeps its previous version in the
// chain, so who asks in the current one counts too.
func (c *clusters) authorizers(current *Compiled) (list []chain.AuthorizerSource) {
	if c.options.Authorizer == nil {
		return nil
	}
	for _, cluster := range c.list {
		a, ok := c.accesses[cluster.Name]
		if !ok || !cluster.Authorizes() && !authorized(current, cluster.Name) {
			continue
		}
		source := c.options.Authorizer(cluster.Name, a)
		cluster.Authorizer = source
		list = append(list, source)
	}
	return list
}

// authorized reports whether somebody may ask the cluster's authorizer now.
func authorized(current *Compiled, name string) bool {
	if current == nil || current.Clusters[name] == nil {
		return false
	}
	return current.Clusters[name].Authorizes()
}

// unauthorized refuses what asks the authorizer of a cluster that it serves and whose API
// nobody can ask: of is its object, and at the field that asks (J2).
func unauthorized(of manifest.Origin, at *field.Path, value string, g *group) []manifest.Problem {
	without := g.withoutAPI()
	if len(without) == 0 {
		return nil
	}
	return []manifest.Problem{of.Problem(at, value, "asks the cluster's authorizer, and nobody can: spec.kubeconfigFile is not set in "+enumerate(without)+
		". Set it, with the rights that \"dispatcher registration --rbac\" prints")}
}

// unauthorized refuses the expressions of a webhook or a policy.
func (e *entry) unauthorized(g *group) (problems []manifest.Problem) {
	if e.policy != nil {
		if at, text := e.policy.compiled.Authorizes(); at != nil {
			problems = unauthorized(e.configuration.Origin, at, text, g)
		}
		return problems
	}
	return unauthorizedConditions(e.matcher, e.spec.MatchConditions, e.configuration.Origin, e.path, g)
}

// unauthorized refuses what a plugin asks, and its matchConditions.
func (p *plugged) unauthorized(phase chain.Phase, g *group) []manifest.Problem {
	s := &p.object.Spec
	problems := unauthorizedConditions(p.matcher, s.MatchConditions, p.Origin, p.at, g)
	if p.entries[phase].Needs.Authorizer && len(p.matcher.Authorizes()) == 0 {
		problems = unauthorized(p.Origin, p.object.Path("plugin"), s.Plugin, g)
	}
	return problems
}

func unauthorizedConditions(m *match.Matcher, list []admissionregistrationv1.MatchCondition, of manifest.Origin, at *field.Path, g *group) (problems []manifest.Problem) {
	for _, i := range m.Authorizes() {
		problems = append(problems, unauthorized(of, at.Child("matchConditions").Index(i).Child("expression"), list[i].Expression, g)...)
	}
	return problems
}
