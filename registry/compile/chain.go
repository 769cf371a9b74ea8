// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// group is clusters that the same bindings select; they share their chains.
type group struct {
	selected selection
	alone    string // the name of its one cluster, if that has services or configurations of its own
	services services
	plugins  map[*plugged]bool // that serve them
	clusters []*chain.Cluster
	listed   [2][]listed // by Phase
}

// listed is a webhook, a policy or a plugin in its place of a chain.
type listed struct {
	*place
	entry   *entry // nil: it is a plugin
	variant *variant
}

// place is where something of a chain is written down, for problems.
type place struct {
	manifest.Origin
	at     *field.Path // what has rules and selectors
	rules  string      // the field that has the rules
	name   string
	number uint32 // of its matcher, among all
}

// groupsOf returns the clusters by the bindings and the plugins that select them. One that
// is alone, or has services, is a group by itself.
func groupsOf(of *clusters, alone map[string]bool, bindings []*binding, plugins []*plugged) (all []*group) {
	known := map[string]*group{}
	for _, cluster := range of.list {
		bits, selected := make([]byte, len(bindings)+len(plugins)), selection{}
		for i, b := range bindings {
			if b.clusters.Matches(labels.Set(cluster.Labels)) {
				bits[i] = 1
				selected[b] = true
				b.selected++
			}
		}
		serving := map[*plugged]bool{}
		for i, p := range plugins {
			if p.clusters.Matches(labels.Set(cluster.Labels)) {
				bits[len(bindings)+i] = 1
				serving[p] = true
				p.selected++
			}
		}
		key, reached := string(bits), of.services[cluster.Name]
		name := ""
		if alone[cluster.Name] || len(reached) > 0 {
			name = cluster.Name
			key += name
		}
		g := known[key]
		if g == nil {
			g = &group{selected: selected, alone: name, services: reached, plugins: serving}
			known[key] = g
			all = append(all, g)
		}
		g.clusters = append(g.clusters, cluster)
	}
	return all
}

// chains shares what clusters have in common: a Webhook compiled once per dispatch, a
// Chain per list of Webhooks, an Index per list of matchers.
type chains struct {
	*variants
	byWebhooks map[string]*chain.Chain
	indexes    map[string]*match.Index
	paths      map[string][]*chain.Path
	reported   map[conflict]bool
	unreached  map[unreached]bool
}

// compileChains gives the clusters their chains.
func compileChains(groups []*group, entries [2][]*entry, plugins []*plugged, v *variants) {
	t := &chains{v, map[string]*chain.Chain{}, map[string]*match.Index{}, map[string][]*chain.Path{}, map[conflict]bool{}, map[unreached]bool{}}
	for _, g := range groups {
		validating, mutating := t.compile(g, chain.Validating, entries, plugins), t.compile(g, chain.Mutating, entries, plugins)
		for _, cluster := range g.clusters {
			cluster.Validating, cluster.Mutating = validating, mutating
		}
	}
}

// compile returns the plugins, the policies and the webhooks that serve the group's
// clusters, in order. Those that Compare as equal stay in this one: kube-apiserver asks
// its policies after its plugins, too.
func (t *chains) compile(g *group, phase chain.Phase, entries [2][]*entry, plugins []*plugged) *chain.Chain {
	list := make([]listed, 0, len(plugins)+len(entries[phase]))
	for _, p := range plugins {
		if g.plugins[p] && p.entries[phase] != nil {
			if phase == chain.Validating || p.entries[chain.Validating] == nil { // once for both phases
				t.problem(unsupplied(p.matcher.NeededLabels(), p.Origin, p.at.Child("namespaceSelector"), g)...)
				t.problem(unsupplied(p.entries[phase].Needs.NamespaceLabels, p.Origin, p.object.Path("plugin"), g)...)
				t.problem(p.unauthorized(phase, g)...)
				t.problem(unstored(p.entries[phase].Needs.Objects, p.Origin, p.object.Path("plugin"), g)...)
			}
			list = append(list, listed{&p.place, nil, t.plugin(p, phase)})
		}
	}
	for _, e := range entries[phase] {
		if !e.serves(g) {
			continue
		}
		if needed := e.matcher.NeededLabels(); len(needed) > 0 {
			t.problem(unsupplied(needed, e.selecting(), e.selectorPath(), g)...)
		}
		if e.policy != nil {
			t.problem(e.policy.unsupplied(g)...)
		}
		t.problem(e.unauthorized(g)...)
		m := e.merge(g.selected)
		t.reportConflicts(m.conflicts, e, g)
		if v := t.of(e, t.reached(e, m.dispatch, g)); v != nil {
			v.bind(m.names)
			list = append(list, listed{e.place, e, v})
		}
	}
	slices.SortStableFunc(list, func(a, b listed) int { return chain.Compare(a.variant.Entry, b.variant.Entry) })
	g.listed[phase] = list
	return t.chain(list, phase)
}

// chain returns the Chain of the list, the same one for the same list.
func (t *chains) chain(list []listed, phase chain.Phase) *chain.Chain {
	var key, matchers []byte
	for _, l := range list {
		key = binary.LittleEndian.AppendUint32(key, l.variant.number)
		matchers = binary.LittleEndian.AppendUint32(matchers, l.number)
	}
	if known, ok := t.byWebhooks[string(key)]; ok {
		return known
	}
	made := &chain.Chain{Webhooks: make([]*chain.Entry, len(list)), Positions: make(map[string]int, len(list))}
	for i, l := range list {
		made.Webhooks[i] = l.variant.Entry
		made.Positions[l.variant.PathID] = i
	}
	t.place(made, string(matchers), phase)
	t.byWebhooks[string(key)] = made
	return made
}

// place gives the chain its Index and its Paths, the same ones for the same
// matchers.
func (t *chains) place(made *chain.Chain, key string, phase chain.Phase) {
	if _, ok := t.indexes[key]; !ok {
		matchers := make([]*match.Matcher, len(made.Webhooks))
		for i, w := range made.Webhooks {
			matchers[i] = w.Matcher
		}
		t.indexes[key] = match.NewIndex(matchers)
		t.paths[key] = chain.PathsOf(made.Webhooks, matchers, phase)
	}
	made.Index, made.Paths = t.indexes[key], t.paths[key]
}

// reportConflicts reports each pair of bindings that disagree once per field,
// with the first webhook and cluster as an example (E16).
func (t *chains) reportConflicts(conflicts []conflict, e *entry, g *group) {
	for _, k := range conflicts {
		if t.reported[k] {
			continue
		}
		t.reported[k] = true
		t.problem(k.second.Problem(field.NewPath("spec", k.field), "", fmt.Sprintf(
			"disagrees with %s in %s about webhook %s in cluster %s",
			k.first.Object, k.first.File, e.name(), g.clusters[0].Name)))
	}
}
