// SPDX-License-Identifier: Apache-2.0

package status

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const keptChanges = 50

// history is the last changes of the configuration.
type history struct {
	mu      sync.Mutex
	changes *ring[Change]
	last    Change
	since   time.Time // of the Snapshot that is served
	hash    string    // of that
	served  digests
}

func newHistory() history { return history{changes: newRing[Change](keptChanges)} }

// add records a change. What is refused for the same reasons as just before is no
// news.
func (h *history) add(now time.Time, c registry.Change) {
	entry := Change{Time: now.UTC(), Problems: []manifest.Problem{}, Added: []string{}, Removed: []string{}, Changed: []string{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Snapshot == nil {
		entry.Snapshot, entry.Refused, entry.Problems = h.last.Snapshot, true, c.Problems
		entry.Clusters, entry.Webhooks, entry.Pending = h.last.Clusters, h.last.Webhooks, h.last.Pending
		if h.last.Refused && slices.Equal(h.last.Problems, entry.Problems) {
			return
		}
	} else {
		h.serve(&entry, c.Snapshot)
	}
	h.last = entry
	h.changes.add(entry)
}

// serve fills in what s, which is served now, differs in from what was.
func (h *history) serve(entry *Change, s *registry.Snapshot) {
	if h.hash != s.Hash {
		h.hash, h.since = s.Hash, entry.Time
	}
	next := digestsOf(s)
	entry.Snapshot, entry.Clusters, entry.Pending = s.ShortHash(), len(s.Clusters), len(s.Pending)
	entry.Webhooks = len(next) - len(s.Clusters)
	if entry.First = h.served == nil; !entry.First {
		entry.Added, entry.Removed, entry.Changed = next.differences(h.served)
	}
	h.served = next
}

// into copies the changes, the newest first, and since when what is served is.
func (h *history) into(s *Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.History = h.changes.newestFirst()
	if s.Snapshot != nil && s.Snapshot.Hash == h.hash {
		s.Snapshot.Since = h.since
	}
}

// digest is a sum over what a Snapshot says of something.
type digest [sha256.Size]byte

func digestOf(what any) (d digest) {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(what) // plain data
	h.Sum(d[:0])
	return d
}

// digests are what a Snapshot has, by name. They stay when it has gone.
type digests map[string]digest

func digestsOf(s *registry.Snapshot) digests {
	d := digester{
		known: map[any]bool{},
		specs: map[*match.Matcher]digest{},
		said:  map[string][]digest{},
	}
	for _, c := range s.Clusters {
		d.say("Cluster/"+c.Name, []any{c.Labels, c.Anonymous, c.Timeout, c.RequestBytes, c.SourceRanges, c.Bypass.Sources(), c.FailOpen.Sources()})
		d.chain(c.Mutating, chain.Mutating)
		d.chain(c.Validating, chain.Validating)
	}
	sums := make(digests, len(d.said))
	for name, said := range d.said {
		slices.SortFunc(said, func(a, b digest) int { return slices.Compare(a[:], b[:]) })
		sums[name] = digestOf(said)
	}
	return sums
}

// digester goes through a Snapshot once: its clusters share chains, its chains
// webhooks, and the variants that bindings make of a webhook what it wants.
type digester struct {
	known map[any]bool // chains and webhooks
	specs map[*match.Matcher]digest
	said  map[string][]digest
}

func (d *digester) chain(chain *chain.Chain, p chain.Phase) {
	if chain == nil || d.known[chain] {
		return
	}
	d.known[chain] = true
	for _, w := range chain.Webhooks {
		if !d.known[w] {
			d.known[w] = true
			d.say(w.Configuration+"/"+w.Name, []any{newVariant(w, p), d.spec(w)})
		}
	}
}

// spec returns the digest of what w wants.
func (d *digester) spec(w *chain.Entry) digest {
	sum, known := d.specs[w.Matcher]
	if !known {
		var described Webhook
		described.describe(&w.Spec)
		sum = digestOf(described)
		d.specs[w.Matcher] = sum
	}
	return sum
}

func (d *digester) say(name string, what any) {
	d.said[name] = append(d.said[name], digestOf(what))
}

// differences returns what d has and before has not, the reverse, and what both
// have and is not the same, each sorted and never nil.
func (d digests) differences(before digests) (added, removed, changed []string) {
	added, removed, changed = []string{}, []string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		was, there := before[name]
		switch {
		case !there:
			added = append(added, name)
		case was != d[name]:
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := d[name]; !there {
			removed = append(removed, name)
		}
	}
	return added, removed, changed
}
