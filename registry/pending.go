// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Pending is a webhook of the sources that is not called as the sources say, because
// nobody answers where it is to be served.
type Pending struct {
	Webhook  string // configuration/webhook
	URL      string
	Previous bool  // its version of before takes part meanwhile
	Err      error // always the latest reason, although the Snapshot stays the same
}

// maxPause is the longest pause between two probes of what does not answer, however many
// replicas there are: a webhook that has come up should take part soon.
const maxPause = time.Minute

// pause returns how long to wait before what does not answer is asked again: so many
// intervals as there are replicas on average, of which random is in [0, 1). 0: until the
// next look.
func pause(interval time.Duration, replicas int, random float64) time.Duration {
	if replicas <= 1 {
		return 0
	}
	return min(time.Duration(2*random*float64(replicas)*float64(interval)), maxPause)
}

// withheld returns next without the webhooks whose Targets have not answered: a
// webhook that takes part in previous keeps the version that it has there. One
// that is new takes part, unless it joins when it is ready: then it is marked as
// Pending. The result shares all that it can with next, which stays as it is.
func withheld(next, previous *Snapshot) *Snapshot {
	w := withholding{previous: previous, silent: map[string]*held{}, chains: map[[2]*chain.Chain]*chain.Chain{}, pending: map[string]Pending{}, kept: map[string]bool{}}
	for _, h := range next.silent() {
		w.silent[h.identity] = h
	}
	if len(w.silent) == 0 {
		return next
	}
	s := &Snapshot{Compiled: next.Compiled}
	s.Clusters = make(map[string]*chain.Cluster, len(next.Clusters))
	for name, c := range next.Clusters {
		s.Clusters[name] = w.cluster(c)
	}
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		s.Pending = append(s.Pending, w.pending[name])
	}
	if len(s.Pending) == 0 {
		return next
	}
	s.Targets = w.targets(next.Targets)
	s.Hash = w.hash(next, s)
	return s
}

// withholding is one pass of withheld.
type withholding struct {
	previous *Snapshot
	silent   map[string]*held                 // those that have not answered, by identity
	chains   map[[2]*chain.Chain]*chain.Chain // by the next and the previous Chain
	pending  map[string]Pending               // by name
	kept     map[string]bool                  // identities of what serves previous versions
}

func (w *withholding) cluster(c *chain.Cluster) *chain.Cluster {
	var before chain.Cluster
	if known := w.previous.Clusters[c.Name]; known != nil {
		before = *known
	}
	mutating, validating := w.chain(c.Mutating, before.Mutating), w.chain(c.Validating, before.Validating)
	if mutating == c.Mutating && validating == c.Validating {
		return c
	}
	changed := *c
	changed.Mutating, changed.Validating = mutating, validating
	return &changed
}

// chain returns next itself if nothing is withheld from it.
func (w *withholding) chain(next, previous *chain.Chain) *chain.Chain {
	key := [2]*chain.Chain{next, previous}
	if known, ok := w.chains[key]; ok {
		return known
	}
	var list []*chain.Entry
	for _, hook := range next.Webhooks {
		list = append(list, w.webhook(hook, previous))
	}
	chain := next
	if !slices.Equal(list, next.Webhooks) {
		chain = next.With(list)
	}
	w.chains[key] = chain
	return chain
}

// webhook returns what takes part for hook: itself, its previous version, or a copy
// that is marked as Pending.
func (w *withholding) webhook(hook *chain.Entry, previous *chain.Chain) *chain.Entry {
	by := hook.ServedBy()
	h, silent := w.silent[by]
	if !silent || hook.Probe == chain.ProbeSkip {
		return hook
	}
	before := previous.Find(hook.Configuration, hook.Name)
	switch {
	case before == nil && hook.Join == chain.JoinEnforce:
		return hook
	case before != nil && before.ServedBy() == by:
		return hook // it takes part where it is, unproven: its previous version is no better
	}
	name := hook.Configuration + "/" + hook.Name
	w.pending[name] = Pending{Webhook: name, URL: h.String(), Previous: before != nil, Err: &h.waiting}
	if before != nil {
		w.kept[before.ServedBy()] = true
		if before.Stage == hook.Stage {
			return before
		}
		moved := *before // to where the next version stands in the chain
		moved.Stage = hook.Stage
		return &moved
	}
	pending := *hook
	pending.Pending = &h.waiting
	return &pending
}

// targets returns the Targets of next and those that serve previous versions, each once.
func (w *withholding) targets(next []*transport.Target) []*transport.Target {
	all, there := slices.Clone(next), compile.ByIdentity(next)
	for _, t := range w.previous.Targets {
		if id := t.Identity(); there[id] == nil && w.kept[id.String()] {
			all = append(all, t)
		}
	}
	return all
}

// hash names what is served: the input, without what is pending, and with the previous
// versions that take part instead, each by all that it says and by the clusters that
// it serves. Nothing else goes into it, so replicas that see the same have the same
// name for it.
func (w *withholding) hash(next, served *Snapshot) string {
	h := sha256.New()
	manifest.WritePart(h, []byte(next.Hash))
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		manifest.WritePart(h, []byte(name))
	}
	sums := map[*chain.Entry][]byte{}
	for _, cluster := range slices.Sorted(maps.Keys(served.Clusters)) {
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			planned := next.Clusters[cluster].Chain(phase).Webhooks
			for i, hook := range served.Clusters[cluster].Chain(phase).Webhooks {
				if hook == planned[i] || hook.Pending != nil {
					continue
				}
				if sums[hook] == nil {
					sums[hook] = hook.Sum()
				}
				manifest.WritePart(h, []byte(cluster))
				manifest.WritePart(h, sums[hook])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
