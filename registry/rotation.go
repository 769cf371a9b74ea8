// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const (
	// openTimeout bounds how long a new configuration waits for the addresses of its
	// webhooks and the namespaces of its clusters. Those that are not known by then
	// are looked up later.
	openTimeout  = 5 * time.Second
	probesAtOnce = 32
	// maxAlive is how many Snapshots there are at a time, the current one included:
	// each may hold the memory of a whole configuration.
	maxAlive      = 3
	drainInterval = 10 * time.Millisecond // between two looks whether one has gone
)

// rotate brings next into service and returns what is served then. It blocks, up to
// one deadline of an admission, and only those wait who want to load. Nothing in it
// can fail.
func (r *Registry) rotate(ctx context.Context, next *Snapshot) *Snapshot {
	// First, next is counted: its Resources are in every list from now on, and those
	// that it shares are not closed.
	added := r.rotation.enter(next)
	// Blocks. Addresses are needed by the probes, and namespaces by the first
	// admission: a changed webhook or cluster is not without for a while.
	open(ctx, added)
	current := r.Snapshot()
	if current == nil {
		// A restart must never switch a policy off: everything takes part, and for
		// what is down its failure policy decides.
		prove(next.holds)
		return r.serve(next)
	}
	// Blocks. The probes come before the swap, because the swap needs to know what
	// to withhold, and because their connections are there for the first calls.
	for _, h := range r.ask(next) {
		r.settings.Logger.Warn("webhook target does not answer", "url", h.String(), "reason", h.waiting.Error())
	}
	return r.serve(withheld(next, current))
}

// askAgain asks those Resources again that have not answered, and returns what is
// served if that lets webhooks in; otherwise nil. It blocks like rotate.
func (r *Registry) askAgain() *Snapshot {
	whole, current := r.rotation.whole, r.Snapshot()
	if whole == nil {
		return nil
	}
	before := len(whole.silent())
	if still := r.ask(whole); len(still) == before {
		return nil
	}
	next := withheld(whole, current)
	if next.Hash == current.Hash { // what answers now was not withheld
		return nil
	}
	return r.serve(next)
}

// serve makes next the current Snapshot.
func (r *Registry) serve(next *Snapshot) *Snapshot {
	// Blocks, until the admissions of the oldest Snapshot have ended: none lasts
	// longer than its deadline. What is served stays until there is room.
	for r.retire(); r.rotation.full(); r.retire() {
		<-time.After(drainInterval)
	}
	r.rotation.swap(next)
	// Whoever is told finds it served.
	r.changed(Change{Snapshot: next})
	for _, p := range next.Pending {
		r.settings.Logger.Warn("webhook is pending", "webhook", p.Webhook, "url", p.URL, "previous_version_serves", p.Previous, "reason", p.Err.Error())
	}
	return next
}

// retire closes the Resources that nobody has and nobody calls any more.
func (r *Registry) retire() {
	for _, h := range r.rotation.retire() {
		h.Close() // may wait for what it ends, so it is not done under the lock
		if h.target != nil {
			r.settings.Logger.Info("webhook target is drained, safe to stop", "url", h.String())
		}
	}
}

// ask asks the Resources of s that have never answered, a few at a time, and returns
// those that do not.
func (r *Registry) ask(s *Snapshot) []*held {
	var wg sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for _, h := range s.silent() {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := h.Ready(s.dryRun(h.Identity()))
			if err == nil {
				h.proven = true
				return
			}
			h.waiting.latest.Store(&err)
		})
	}
	wg.Wait()
	return s.silent()
}

// dryRun returns what the bindings of the webhooks that a Resource serves want it to
// answer; nil: nothing.
func (s *Snapshot) dryRun(identity string) *chain.DryRun {
	for name, c := range s.Clusters {
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			for _, w := range c.Chain(phase).Webhooks {
				if w.Probe == chain.ProbeReview && w.ServedBy() == identity {
					return &chain.DryRun{Cluster: name, Phase: phase, Webhook: w}
				}
			}
		}
	}
	return nil
}

// rotation is the Snapshots that are alive and the Resources that they have. Who has
// the Registry's turn changes it, and nobody else. Its lock is for those who look
// meanwhile; nothing blocks under it.
type rotation struct {
	resource func(*transport.Target) chain.Resource
	current  atomic.Pointer[Snapshot] // what is served, without a lock

	mu       sync.Mutex
	whole    *Snapshot        // of the sources, with everything that is pending
	previous []*Snapshot      // that admissions may still use, oldest first
	table    map[string]*held // all that is not closed, by identity
}

// enter makes next what the sources say, and returns the Resources that are new.
func (r *rotation) enter(next *Snapshot) (added []*held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.whole
	r.whole = next
	added = r.count(next)
	if before != r.current.Load() { // what the sources said was never served as a whole
		before.release()
	}
	return added
}

// swap makes next the current Snapshot, in place of the one that is.
func (r *rotation) swap(next *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(next)
	if before := r.current.Swap(next); before != nil {
		r.previous = append(r.previous, before)
	}
}

// full reports whether as many Snapshots are alive as there may be.
func (r *rotation) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.previous) >= maxAlive-1
}

// retire lets go of Snapshots that no admission uses any more, and of the Resources
// that no Snapshot has and nobody calls. These are the caller's to close, in the order
// of their names.
func (r *rotation) retire() (closing []*held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.previous = slices.DeleteFunc(r.previous, func(s *Snapshot) bool {
		if s.users.Load() > 0 {
			return false
		}
		s.release()
		return true
	})
	for identity, h := range r.table {
		if h.snapshots == 0 && !h.Busy() {
			delete(r.table, identity)
			closing = append(closing, h)
		}
	}
	slices.SortFunc(closing, func(a, b *held) int { return cmp.Compare(a.String(), b.String()) })
	return closing
}

// count counts s once among those who have its Resources.
func (r *rotation) count(s *Snapshot) (added []*held) {
	if s.holds != nil {
		return nil
	}
	hold := func(identity string, target *transport.Target, made func() chain.Resource) {
		h := r.table[identity]
		if h == nil {
			h = &held{Resource: made(), target: target, waiting: &waiting{}}
			r.table[identity] = h
			added = append(added, h)
		}
		h.snapshots++
		s.holds = append(s.holds, h)
	}
	for _, t := range s.Targets {
		hold(t.Identity().String(), t, func() chain.Resource { return r.resource(t) })
	}
	for _, source := range s.Sources {
		hold(source.Identity(), nil, func() chain.Resource { return source })
	}
	return added
}

// release gives back the Resources of a Snapshot that is not alive any more.
func (s *Snapshot) release() {
	for _, h := range s.holds {
		h.snapshots--
	}
}

// targets returns the Targets that are not closed: those that Snapshots have, and
// those that none has any more, sorted by URL.
func (r *rotation) targets() (had, draining []*transport.Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.table {
		switch {
		case h.target == nil:
		case h.snapshots > 0:
			had = append(had, h.target)
		default:
			draining = append(draining, h.target)
		}
	}
	byURL := func(a, b *transport.Target) int {
		x, y := a.Identity(), b.Identity() // of one URL there may be several
		return cmp.Or(cmp.Compare(a.URL(), b.URL()), bytes.Compare(x[:], y[:]))
	}
	slices.SortFunc(had, byURL)
	slices.SortFunc(draining, byURL)
	return had, draining
}

// close closes every Resource, all at once.
func (r *rotation) close() {
	r.mu.Lock()
	table := r.table
	r.table = map[string]*held{}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, h := range table {
		all.Go(h.Close)
	}
	all.Wait()
}
