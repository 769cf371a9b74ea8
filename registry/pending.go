// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Pending is a webhook of the sources that is not called as the sources say, because
// nobody answers where it is to be served.
type Pending struct {
	Webhook  string // configuration/webhook
	URL      string
	Previous bool // its version of before takes part meanwhile
	Err      error
}

// unanswered are the Targets that have not answered a probe yet, with the reason.
type unanswered map[webhook.Identity]error

// withheld returns next without the webhooks whose Targets have not answered: a
// webhook that takes part in previous keeps the version that it has there. One
// that is new takes part, unless it joins when it is ready: then it is marked as
// Pending. The result shares all that it can with next, which stays as it is.
func withheld(next, previous *Snapshot, silent unanswered) *Snapshot {
	if len(silent) == 0 {
		return next
	}
	w := withholding{previous: previous, silent: silent, chains: map[[2]*Chain]*Chain{}, pending: map[string]Pending{}}
	s := *next
	s.users = new(atomic.Int64)
	s.Clusters = make(map[string]*Cluster, len(next.Clusters))
	for name, c := range next.Clusters {
		s.Clusters[name] = w.cluster(c)
	}
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		s.Pending = append(s.Pending, w.pending[name])
	}
	if len(s.Pending) == 0 {
		return next
	}
	s.Targets = slices.Concat(next.Targets, w.targets(next.Targets))
	s.Hash = w.hash(next, &s)
	return &s
}

// withholding is one pass of withheld.
type withholding struct {
	previous *Snapshot
	silent   unanswered
	chains   map[[2]*Chain]*Chain // by the next and the previous Chain
	pending  map[string]Pending   // by name
	kept     []*webhook.Target    // of previous versions
}

func (w *withholding) cluster(c *Cluster) *Cluster {
	var before Cluster
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
func (w *withholding) chain(next, previous *Chain) *Chain {
	key := [2]*Chain{next, previous}
	if known, ok := w.chains[key]; ok {
		return known
	}
	var list []*Webhook
	for _, hook := range next.Webhooks {
		list = append(list, w.webhook(hook, previous))
	}
	chain := next
	if !slices.Equal(list, next.Webhooks) {
		chain = next.with(list)
	}
	w.chains[key] = chain
	return chain
}

// webhook returns what takes part for hook: itself, its previous version, or a copy
// that is marked as Pending.
func (w *withholding) webhook(hook *Webhook, previous *Chain) *Webhook {
	err, silent := w.silent[hook.Target.Identity()]
	if !silent || hook.Probe == ProbeSkip {
		return hook
	}
	before := previous.find(hook.Configuration, hook.Name)
	if before == nil && hook.Join == JoinEnforce {
		return hook
	}
	name := hook.Configuration + "/" + hook.Name
	w.pending[name] = Pending{Webhook: name, URL: hook.Target.URL(), Previous: before != nil, Err: err}
	if before != nil {
		w.kept = append(w.kept, before.Target)
		return before
	}
	pending := *hook
	pending.Pending = err
	return &pending
}

// find returns the webhook of that name that takes part, or nil.
func (c *Chain) find(configuration, name string) *Webhook {
	if c == nil {
		return nil
	}
	for _, w := range c.Webhooks {
		if w.Configuration == configuration && w.Name == name && w.Pending == nil {
			return w
		}
	}
	return nil
}

// with returns c with a list in which each webhook stands in the place of one of c.
// Paths are those of c, which the cluster's registration is made of.
func (c *Chain) with(list []*Webhook) *Chain {
	matchers := make([]*match.Matcher, len(list))
	for i, w := range list {
		matchers[i] = w.Matcher
	}
	return &Chain{Webhooks: list, Index: match.NewIndex(matchers), Paths: c.Paths, positions: c.positions}
}

// targets returns those of kept that are not there already, each once.
func (w *withholding) targets(there []*webhook.Target) []*webhook.Target {
	known := byIdentity(there)
	var more []*webhook.Target
	for _, t := range w.kept {
		if _, ok := known[t.Identity()]; !ok {
			known[t.Identity()] = t
			more = append(more, t)
		}
	}
	return more
}

// hash names what is served: the input, without what is pending, and with the previous
// versions that take part instead, each by all that it says and by the clusters that
// it serves. Nothing else goes into it, so replicas that see the same have the same
// name for it.
func (w *withholding) hash(next, served *Snapshot) string {
	h := sha256.New()
	writePart(h, []byte(next.Hash))
	for _, name := range slices.Sorted(maps.Keys(w.pending)) {
		writePart(h, []byte(name))
	}
	sums := map[*Webhook][]byte{}
	for _, cluster := range slices.Sorted(maps.Keys(served.Clusters)) {
		for _, phase := range []Phase{Mutating, Validating} {
			planned := next.Clusters[cluster].Chain(phase).Webhooks
			for i, hook := range served.Clusters[cluster].Chain(phase).Webhooks {
				if hook == planned[i] || hook.Pending != nil {
					continue
				}
				if sums[hook] == nil {
					sums[hook] = hook.sum()
				}
				writePart(h, []byte(cluster))
				writePart(h, sums[hook])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sum is over all that w says.
func (w *Webhook) sum() []byte {
	said := *w
	said.Matcher, said.Target = nil, nil // Spec says the one, its identity the other
	text, _ := json.Marshal(said)        // plain data always has a text
	id := w.Target.Identity()
	sum := sha256.Sum256(append(text, id[:]...))
	return sum[:]
}
