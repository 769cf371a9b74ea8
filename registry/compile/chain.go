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
)

// group is clusters that the same bindings select; they share their chains.
type group struct {
	selected selection
	clusters []*chain.Cluster
	listed   [2][]listed // by Phase
}

// listed is a webhook in its place of a chain.
type listed struct {
	entry   *entry
	variant *variant
}

// groupsOf returns the clusters by the bindings that select them.
func groupsOf(clusters []*chain.Cluster, bindings []*binding) (all []*group) {
	known := map[string]*group{}
	for _, cluster := range clusters {
		bits, selected := make([]byte, len(bindings)), selection{}
		for i, b := range bindings {
			if b.clusters.Matches(labels.Set(cluster.Labels)) {
				bits[i] = 1
				selected[b] = true
				b.selected++
			}
		}
		g := known[string(bits)]
		if g == nil {
			g = &group{selected: selected}
			known[string(bits)] = g
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
}

// compileChains gives the clusters their chains.
func compileChains(groups []*group, entries [2][]*entry, v *variants) {
	t := &chains{v, map[string]*chain.Chain{}, map[string]*match.Index{}, map[string][]*chain.Path{}, map[conflict]bool{}}
	for _, g := range groups {
		validating, mutating := t.compile(g, chain.Validating, entries), t.compile(g, chain.Mutating, entries)
		for _, cluster := range g.clusters {
			cluster.Validating, cluster.Mutating = validating, mutating
		}
	}
}

// compile returns the webhooks that serve the group's clusters, in order.
func (t *chains) compile(g *group, phase chain.Phase, entries [2][]*entry) *chain.Chain {
	var list []listed
	for _, e := range entries[phase] {
		if !e.serves(g.selected) {
			continue
		}
		t.problem(unsupplied(e, g)...)
		m := e.merge(g.selected)
		t.reportConflicts(m.conflicts, e, g)
		if v := t.of(e, m.dispatch); v != nil {
			list = append(list, listed{e, v})
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
		matchers = binary.LittleEndian.AppendUint32(matchers, l.entry.number)
	}
	if known, ok := t.byWebhooks[string(key)]; ok {
		return known
	}
	made := &chain.Chain{Webhooks: make([]*chain.Entry, len(list)), Positions: make(map[string]int, len(list))}
	for i, l := range list {
		made.Webhooks[i] = l.variant.Entry
		made.Positions[l.entry.pathID] = i
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
