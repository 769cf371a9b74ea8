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

// chainTable shares what clusters have in common: a Webhook compiled once per
// dispatch, a Chain per list of Webhooks, an Index per list of matchers.
type chainTable struct {
	chains   map[string]*chain.Chain
	indexes  map[string]*match.Index
	paths    map[string][]*chain.Path
	webhooks uint32
	reported map[conflict]bool
	apart    map[[2]uint32]bool // entries on different Paths of which a warning tells
}

// group is clusters that the same bindings select; they share their chains.
type group struct {
	selected selection
	clusters []*chain.Cluster
}

func (c *compiler) compileChains() {
	c.chains = chainTable{chains: map[string]*chain.Chain{}, indexes: map[string]*match.Index{}, paths: map[string][]*chain.Path{}, reported: map[conflict]bool{}, apart: map[[2]uint32]bool{}}
	for _, g := range c.groups() {
		validating, mutating := c.compileChain(g, chain.Validating), c.compileChain(g, chain.Mutating)
		for _, cluster := range g.clusters {
			cluster.Validating, cluster.Mutating = validating, mutating
		}
	}
}

// groups returns the clusters by the bindings that select them.
func (c *compiler) groups() []*group {
	var all []*group
	known := map[string]*group{}
	for _, cluster := range c.clusters {
		key, selected := c.selection(cluster)
		g, ok := known[key]
		if !ok {
			g = &group{selected: selected}
			known[key] = g
			all = append(all, g)
		}
		g.clusters = append(g.clusters, cluster)
	}
	return all
}

func (c *compiler) selection(cluster *chain.Cluster) (key string, selected selection) {
	bits := make([]byte, len(c.bindings))
	selected = selection{}
	for i, b := range c.bindings {
		if b.clusters.Matches(labels.Set(cluster.Labels)) {
			bits[i] = 1
			selected[b] = true
			b.selected++
		}
	}
	return string(bits), selected
}

// compileChain returns the webhooks that serve the group's clusters, in order.
func (c *compiler) compileChain(g *group, phase chain.Phase) *chain.Chain {
	var list []listed
	for _, e := range c.entries[phase] {
		if !e.serves(g.selected) {
			continue
		}
		c.checkNamespaces(e, g)
		m := e.merge(g.selected)
		c.reportConflicts(m.conflicts, e, g)
		if v := c.variant(e, m.dispatch); v != nil {
			list = append(list, listed{e, v})
			e.served = append(e.served, served{g, v.Entry})
		}
	}
	slices.SortStableFunc(list, func(a, b listed) int { return chain.Compare(a.variant.Entry, b.variant.Entry) })
	chain := c.chains.chain(list, phase)
	c.lintPaths(list, chain, g)
	return chain
}

// listed is a webhook in its place of a chain.
type listed struct {
	entry   *entry
	variant *variant
}

// variant returns the entry compiled under d; nil after a problem.
func (c *compiler) variant(e *entry, d dispatch) *variant {
	if v, ok := e.webhooks[d]; ok {
		return v
	}
	v, err := e.compile(d, c)
	if err != nil {
		c.problem(e.configuration.Problem(e.path.Child("clientConfig"), "", err.Error()))
	}
	e.webhooks[d] = v
	return v
}

// chain returns the Chain of the list, the same one for the same list.
func (t *chainTable) chain(list []listed, phase chain.Phase) *chain.Chain {
	var key, matchers []byte
	for _, l := range list {
		key = binary.LittleEndian.AppendUint32(key, l.variant.number)
		matchers = binary.LittleEndian.AppendUint32(matchers, l.entry.number)
	}
	if known, ok := t.chains[string(key)]; ok {
		return known
	}
	made := &chain.Chain{Webhooks: make([]*chain.Entry, len(list)), Positions: make(map[string]int, len(list))}
	for i, l := range list {
		made.Webhooks[i] = l.variant.Entry
		made.Positions[l.entry.pathID] = i
	}
	t.place(made, string(matchers), phase)
	t.chains[string(key)] = made
	return made
}

// place gives the chain its Index and its Paths, the same ones for the same
// matchers.
func (t *chainTable) place(made *chain.Chain, key string, phase chain.Phase) {
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
func (c *compiler) reportConflicts(conflicts []conflict, e *entry, g *group) {
	for _, k := range conflicts {
		if c.chains.reported[k] {
			continue
		}
		c.chains.reported[k] = true
		c.problem(k.second.Problem(field.NewPath("spec", k.field), "", fmt.Sprintf(
			"disagrees with %s in %s about webhook %s in cluster %s",
			k.first.Object, k.first.File, e.name(), g.clusters[0].Name)))
	}
}
