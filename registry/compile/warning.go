// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	outage "github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// lint adds warnings about what is valid and still likely to hurt. It never
// keeps a change from taking effect.
type lint struct {
	*diagnostics
	options *Options
	cel     *celenv.Compiler
	cell    string // whose Clusters there are; "": all
}

func (l lint) all(o *manifest.Objects, bindings []*binding, entries [2][]*entry, plugins []*plugged, groups []*group) {
	l.paths(groups)
	every := slices.Concat(entries[chain.Validating], entries[chain.Mutating])
	if len(l.problems) == 0 { // otherwise what is missing may be what is refused
		switch {
		case len(o.Clusters) == 0 && l.cell != "":
			l.warn(manifest.Problem{Reason: fmt.Sprintf("there is no Cluster of cell %s: nobody may call", l.cell)})
		case len(o.Clusters) == 0 && o.Len() > 0:
			l.warn(manifest.Problem{Reason: "there is no Cluster: nobody may call"})
		}
		clusters := len(groups) > 0 && l.cell == "" // and none is in another cell
		for _, b := range bindings {
			l.binding(b, every, clusters)
		}
		l.policies(o, every, clusters)
		l.plugins(plugins, clusters)
	}
	l.findings(every, groups)
	l.bypassed(every, groups)
	short := l.short(groups)
	for _, e := range every {
		if e.policy != nil {
			l.wide(e)
		}
		if clusters := short[e]; len(clusters) > 0 {
			p := e.configuration.Problem(e.path.Child("timeoutSeconds"), e.timeout().String(),
				"is longer than the whole admission may take in "+enumerate(clusters))
			p.Rule = outage.Timeout
			l.warn(p)
		}
	}
}

// binding warns about a binding that selects nothing (E11).
func (l lint) binding(b *binding, every []*entry, clusters bool) {
	spec := field.NewPath("spec")
	for i, glob := range b.Spec.Webhooks {
		if !slices.ContainsFunc(every, func(e *entry) bool { return globMatches(glob, e.configuration.Name(), e.spec.Name) }) {
			l.warn(b.Problem(spec.Child("webhooks").Index(i), glob, "selects no webhook"))
		}
	}
	if b.selected == 0 && clusters {
		l.warn(b.Problem(spec.Child("clusterSelector"), metav1.FormatLabelSelector(b.Spec.ClusterSelector), "selects no Cluster"))
	}
}

// findings are what package lint says of webhooks: what an outage of one that fails
// closed stops, among others (E10).
func (l lint) findings(every []*entry, groups []*group) {
	in := outage.Input{Registry: true, Compiler: l.cel, Exemptions: l.exemptions(groups), Trusted: trusted(every)}
	var configurations []*manifest.Configuration
	for _, e := range every {
		if e.policy == nil && !slices.Contains(configurations, e.configuration) {
			configurations = append(configurations, e.configuration)
			in.Configurations = append(in.Configurations, outage.Configuration{
				Object: e.configuration.Object, Name: e.configuration.Name(), Annotations: e.configuration.Meta.Annotations, Mutating: e.configuration.Phase == chain.Mutating,
				Beta: e.configuration.Beta, Webhooks: e.configuration.Webhooks,
			})
		}
	}
	for _, f := range outage.Check(in) {
		p := configurations[f.Configuration].Problem(f.At, f.Value, f.Text)
		p.Rule = f.Rule.ID
		l.warn(p)
	}
}

// wide warns about policies that select everything: package lint knows webhooks only.
func (l lint) wide(e *entry) {
	for i := range e.spec.Rules {
		if outage.IsWide(&e.spec.Rules[i]) {
			p := e.configuration.Problem(e.path.Child(e.rules()).Index(i), "", "selects every resource of every group")
			p.Rule = outage.CatchAll
			l.warn(p)
		}
	}
}

// short returns the clusters that do not wait as long as a webhook may take.
func (l lint) short(groups []*group) map[*entry][]string {
	short := map[*entry][]string{}
	for _, g := range groups {
		for _, cluster := range g.clusters {
			limit := l.options.MaxTimeout // as far as that is known
			if cluster.Timeout > 0 {
				limit = min(limit, cluster.Timeout)
			}
			for _, list := range g.listed {
				for _, w := range list {
					if w.entry != nil && w.entry.policy == nil && w.variant.Timeout > limit {
						short[w.entry] = append(short[w.entry], fmt.Sprintf("Cluster/%s (%s)", cluster.Name, limit))
					}
				}
			}
		}
	}
	return short
}

// plugins warns about plugins that are nowhere on (E11).
func (l lint) plugins(list []*plugged, clusters bool) {
	for _, p := range list {
		if p.selected == 0 && clusters {
			l.warn(p.object.Problem(p.at.Child("clusterSelector"), metav1.FormatLabelSelector(p.object.Spec.ClusterSelector), "selects no Cluster"))
		}
	}
}

// paths warns about webhooks for which clusters register entries of their own, once
// for each pair that conflicts.
func (l lint) paths(groups []*group) {
	told := map[[2]uint32]bool{}
	for _, g := range groups {
		for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
			list := g.listed[phase]
			for _, pair := range apart(g.clusters[0].Chain(phase)) {
				first, second := list[pair[0]].place, list[pair[1]].place
				if told[[2]uint32{first.number, second.number}] {
					continue
				}
				told[[2]uint32{first.number, second.number}] = true
				l.warn(first.Problem(first.at.Child(first.rules), "", fmt.Sprintf(
					"list other versions or groups of a resource than %s does: in Cluster/%s the two are registered apart, a further call for what both select",
					second.name, g.clusters[0].Name)))
			}
		}
	}
}

// apart returns, for each Path but the one with most webhooks, a webhook of it and one
// there that conflict, or are the first of each.
func apart(of *chain.Chain) (pairs [][2]int) {
	if len(of.Paths) < 2 {
		return nil
	}
	main := slices.MaxFunc(of.Paths, func(a, b *chain.Path) int { return cmp.Compare(len(a.Positions), len(b.Positions)) })
	for _, p := range of.Paths {
		if p == main {
			continue
		}
		pair := [2]int{p.Positions[0], main.Positions[0]}
		for _, i := range p.Positions {
			conflicting := slices.IndexFunc(main.Positions, func(j int) bool { return of.Webhooks[i].Matcher.ConflictsWith(of.Webhooks[j].Matcher) })
			if conflicting >= 0 {
				pair = [2]int{i, main.Positions[conflicting]}
				break
			}
		}
		pairs = append(pairs, pair)
	}
	return pairs
}
