// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
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

// rotation is the Snapshots that are alive and the Resources that they have. Who has
// the Registry's turn calls its methods, and nobody else, but for targets.
type rotation struct {
	Settings
	current  atomic.Pointer[Snapshot] // what is served; admissions take it from here
	whole    *Snapshot                // of the Sources, with everything that is pending
	previous []*Snapshot              // that admissions may still use, oldest first

	// mu is for targets, which sees table and how many have what is in it. Under it
	// something is put in, taken out or counted. Nothing else is done, and nothing of a
	// Resource is called.
	mu    sync.Mutex
	table map[string]*held // all that is not closed, by identity
}

// held is a Resource that Snapshots have.
type held struct {
	chain.Resource
	identity  string
	target    *transport.Target // that it is; nil: it is something else
	snapshots int               // how many have it
	// proven: it has answered, or took part in a cold start. It is not asked again,
	// whatever Snapshot has it.
	proven  bool
	waiting waiting
	due     time.Time // before which askAgain does not ask; zero: it always does
}

// waiting is why a Resource is not ready: always the latest reason. A Snapshot that
// is served meanwhile points at it.
type waiting struct{ latest atomic.Pointer[error] }

// Error returns the text of the latest reason.
func (w *waiting) Error() string { return w.Unwrap().Error() }

// Unwrap returns the latest reason.
func (w *waiting) Unwrap() error {
	if err := w.latest.Load(); err != nil {
		return *err
	}
	return errNotAsked
}

var errNotAsked = errors.New("was not asked yet")

// rotate brings next into service and returns what is served then. Nothing in it can
// fail. Only those wait for it who want to load.
func (r *rotation) rotate(ctx context.Context, next *Snapshot) *Snapshot {
	// First, next is counted: its Resources are in every list from now on, and those
	// that it shares are not closed. Then what the Sources said before may go, unless
	// that is served.
	before, current := r.whole, r.current.Load()
	added := r.hold(next)
	r.whole = next
	if before != current {
		r.release(before)
	}
	// Blocks, for openTimeout at most. Addresses are needed by the probes, and
	// namespaces by the first admission: a changed webhook or cluster is not without
	// for a while.
	open(ctx, added)
	if current == nil {
		// A restart must never switch a policy off: everything takes part, and for
		// what is down its failure policy decides.
		for _, h := range next.holds {
			h.proven = true
		}
		return r.serve(next)
	}
	// Blocks, for as long as each of the Resources bounds itself, probesAtOnce at a time.
	// The probes come before the swap, because the swap needs to know what to withhold,
	// and because their connections are there for the first calls.
	for _, h := range r.ask(ctx, next, time.Time{}) {
		r.Logger.Warn("webhook target does not answer", "url", h.String(), "reason", h.waiting.Error())
	}
	return r.serve(withheld(next, current))
}

// askAgain asks those Resources again that have not answered, and returns what is
// served if that lets webhooks in; otherwise nil. It blocks like rotate.
func (r *rotation) askAgain(ctx context.Context) *Snapshot {
	if r.whole == nil {
		return nil
	}
	before := len(r.whole.silent())
	if still := r.ask(ctx, r.whole, time.Now()); len(still) == before {
		return nil
	}
	current := r.current.Load()
	next := withheld(r.whole, current)
	if next.Hash == current.Hash { // what answers now was not withheld
		return nil
	}
	return r.serve(next)
}

// serve makes next the current Snapshot.
func (r *rotation) serve(next *Snapshot) *Snapshot {
	// Blocks, until the admissions of the oldest Snapshot have ended: none lasts
	// longer than its deadline. What is served stays until there is room.
	for r.retire(); len(r.previous) >= maxAlive-1; r.retire() {
		<-time.After(drainInterval)
	}
	// Counted before anybody can acquire it, if rotate has not done that.
	r.hold(next)
	if before := r.current.Swap(next); before != nil {
		r.previous = append(r.previous, before)
	}
	// After the swap: whoever is notified finds it served.
	r.Changed(Change{Snapshot: next})
	for _, p := range next.Pending {
		r.Logger.Warn("webhook is pending", "webhook", p.Webhook, "url", p.URL, "previous_version_serves", p.Previous, "reason", p.Err.Error())
	}
	return next
}

// retire lets go of Snapshots that no admission uses any more, and closes the Resources
// that no Snapshot has and nobody calls, in the order of their names.
func (r *rotation) retire() {
	r.previous = slices.DeleteFunc(r.previous, func(s *Snapshot) bool {
		if s.users.Load() > 0 {
			return false
		}
		r.release(s)
		return true
	})
	var closing []*held
	for _, h := range r.table {
		if h.snapshots == 0 && !h.Busy() {
			closing = append(closing, h)
		}
	}
	r.remove(closing)
	slices.SortFunc(closing, func(a, b *held) int { return cmp.Compare(a.String(), b.String()) })
	for _, h := range closing {
		h.Close() // blocks, until what it ends has ended
		if h.target != nil {
			r.Logger.Info("webhook target is drained, safe to stop", "url", h.String())
		}
	}
}

// close closes every Resource, all at once. It blocks until what they end has ended.
func (r *rotation) close() {
	closing := slices.Collect(maps.Values(r.table))
	r.remove(closing)
	var all sync.WaitGroup
	for _, h := range closing {
		all.Go(h.Close)
	}
	all.Wait()
}

// open opens Resources, all at once: none waits for another, which may belong to
// another cluster.
func open(ctx context.Context, list []*held) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range list {
		all.Go(func() { h.Open(ctx) })
	}
	all.Wait()
}

// ask asks the Resources of s that have never answered, a few at a time, and returns
// those that do not. With a time, those are left out that are due later. Once ctx is done
// no further one is asked.
func (r *rotation) ask(ctx context.Context, s *Snapshot, at time.Time) []*held {
	var all sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for _, h := range s.silent() {
		if !at.IsZero() && at.Before(h.due) {
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			err := h.Ready(s.dryRun(h.identity))
			if err == nil {
				h.proven = true
				return
			}
			h.waiting.latest.Store(&err)
			h.due = time.Now().Add(pause(r.Interval, r.replicas(), rand.Float64()))
		})
	}
	all.Wait()
	return s.silent()
}

// hold counts s once among those who have its Resources, and returns those that are
// new.
func (r *rotation) hold(s *Snapshot) (added []*held) {
	if s.holds != nil {
		return nil
	}
	has := func(identity string, target *transport.Target, made func() chain.Resource) {
		h := r.table[identity]
		if h == nil {
			h = &held{Resource: made(), identity: identity, target: target}
			added = append(added, h)
		}
		s.holds = append(s.holds, h)
	}
	for _, t := range s.Targets {
		has(t.Identity().String(), t, func() chain.Resource { return r.Resource(t) })
	}
	for _, source := range s.Sources {
		has(source.Identity(), nil, func() chain.Resource { return source })
	}
	for _, authorizer := range s.Authorizers {
		has(authorizer.Identity(), nil, func() chain.Resource { return authorizer })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range s.holds {
		r.table[h.identity] = h
		h.snapshots++
	}
	return added
}

// release gives back the Resources of a Snapshot that is not alive any more.
func (r *rotation) release(s *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range s.holds {
		h.snapshots--
	}
}

// remove takes Resources that are to be closed out of every list.
func (r *rotation) remove(list []*held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range list {
		delete(r.table, h.identity)
	}
}

// targets returns the Targets that are not closed: those that Snapshots have, and
// those that none has any more, sorted by URL. Everybody may call it.
func (r *rotation) targets() (had, draining []*transport.Target) {
	r.mu.Lock()
	for _, h := range r.table {
		switch {
		case h.target == nil:
		case h.snapshots > 0:
			had = append(had, h.target)
		default:
			draining = append(draining, h.target)
		}
	}
	r.mu.Unlock()
	byURL := func(a, b *transport.Target) int {
		x, y := a.Identity(), b.Identity() // of one URL there may be several
		return cmp.Or(cmp.Compare(a.URL(), b.URL()), bytes.Compare(x[:], y[:]))
	}
	slices.SortFunc(had, byURL)
	slices.SortFunc(draining, byURL)
	return had, draining
}
