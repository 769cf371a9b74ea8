// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/webhook"
)

const (
	probesAtOnce = 32
	// alive is how many Snapshots there are at a time, the current one included:
	// each may hold the memory of a whole configuration.
	alive         = 3
	drainInterval = 10 * time.Millisecond // between two looks whether one has gone
)

// rotation is what follows a new Snapshot: Targets that must answer first, and
// those that leave. It is guarded by the Registry's lock.
type rotation struct {
	whole    *Snapshot   // of the sources, with everything that is pending
	silent   unanswered  // of whole
	asked    bool        // just now
	previous []*Snapshot // that admissions may still use, oldest first
}

// rotate swaps next in, without what is pending, when older Snapshots have made
// room.
func (r *Registry) rotate(next *Snapshot) {
	current := r.Snapshot()
	if current == nil {
		// A restart must never switch a policy off: everything takes part, and for
		// what is down its failure policy speaks.
		r.rotation = rotation{whole: next, silent: unanswered{}}
		r.snapshot.Store(next)
		r.changed(Change{Snapshot: next})
		return
	}
	r.rotation.whole = next
	unproven := r.unproven(next, current)
	r.rotation.silent = r.probe(unproven)
	r.rotation.asked = true
	for _, t := range unproven {
		if err, silent := r.rotation.silent[t.Identity()]; silent {
			r.settings.Logger.Warn("webhook target does not answer", "url", t.URL(), "reason", err.Error())
		}
	}
	r.swap(withheld(next, current, r.rotation.silent))
}

// reprobe asks again those Targets that have not answered, and lets the webhooks
// in whose Target does.
func (r *Registry) reprobe() {
	defer r.reap()
	asked := r.rotation.asked
	r.rotation.asked = false
	if asked || len(r.rotation.silent) == 0 {
		return
	}
	var silent []*webhook.Target
	for _, t := range r.rotation.whole.Targets {
		if _, ok := r.rotation.silent[t.Identity()]; ok {
			silent = append(silent, t)
		}
	}
	still := r.probe(silent)
	if len(still) < len(r.rotation.silent) {
		r.rotation.silent = still
		if next := withheld(r.rotation.whole, r.Snapshot(), still); next.Hash != r.Snapshot().Hash {
			r.swap(next)
			r.logLoaded(next)
		}
	}
}

// unproven returns the Targets of next that never took part: those that current
// does not have, or has not let in.
func (r *Registry) unproven(next, current *Snapshot) []*webhook.Target {
	known := byIdentity(current.Targets)
	var list []*webhook.Target
	for _, t := range next.Targets {
		_, there := known[t.Identity()]
		if _, silent := r.rotation.silent[t.Identity()]; silent || !there {
			list = append(list, t)
		}
	}
	return list
}

// probe asks Targets, a few at a time, and returns those that do not answer.
func (r *Registry) probe(targets []*webhook.Target) unanswered {
	silent := unanswered{}
	if r.settings.Probe == nil {
		return silent
	}
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		slots = make(chan struct{}, probesAtOnce)
	)
	for _, t := range targets {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := r.settings.Probe(t, r.rotation.whole.question(t)); err != nil {
				mu.Lock()
				silent[t.Identity()] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return silent
}

// swap makes next the current Snapshot.
func (r *Registry) swap(next *Snapshot) {
	for r.reap(); len(r.rotation.previous) >= alive-1; r.reap() {
		<-time.After(drainInterval) // no admission lasts longer than its deadline
	}
	if previous := r.snapshot.Swap(next); previous != nil && previous != next {
		r.rotation.previous = append(r.rotation.previous, previous)
	}
	r.changed(Change{Snapshot: next})
	for _, p := range next.Pending {
		r.settings.Logger.Warn("webhook is pending", "webhook", p.Webhook, "url", p.URL, "previous_version_serves", p.Previous, "reason", p.Err.Error())
	}
	r.reap()
}

// reap lets go of Snapshots that no admission uses any more, and closes Targets
// that are in no other and have no call under way.
func (r *Registry) reap() {
	if r.rotation.whole == nil {
		return
	}
	kept := r.rotation.previous[:0]
	var gone []*Snapshot
	for _, s := range r.rotation.previous {
		if s.users.Load() > 0 {
			kept = append(kept, s)
		} else {
			gone = append(gone, s)
		}
	}
	clear(r.rotation.previous[len(kept):])
	r.rotation.previous = kept
	r.depart(gone)
}

// depart moves the Targets of Snapshots that are gone to those that leave, and
// closes the ones that nobody calls any more.
func (r *Registry) depart(gone []*Snapshot) {
	needed := byIdentity(r.rotation.whole.Targets)
	for _, s := range append(r.rotation.previous, r.Snapshot()) {
		for _, t := range s.Targets {
			needed[t.Identity()] = t
		}
	}
	leaving := byIdentity(r.Draining())
	for _, s := range gone {
		for _, t := range s.Targets {
			leaving[t.Identity()] = t
		}
	}
	var still []*webhook.Target
	for id, t := range leaving {
		switch {
		case needed[id] != nil:
		case t.Outstanding() > 0:
			still = append(still, t)
		default:
			t.Close()
			r.settings.Logger.Info("webhook target is drained, safe to stop", "url", t.URL())
		}
	}
	r.leaving.Store(&still)
}

// Draining returns the Targets that have left the configuration and still have
// calls under way. It does not wait for a load: readiness asks it.
func (r *Registry) Draining() []*webhook.Target {
	if list := r.leaving.Load(); list != nil {
		return *list
	}
	return nil
}

// Acquire returns the current Snapshot, or nil before the first good Load. Who
// gets one calls Release when the last call by it has been begun.
func (r *Registry) Acquire() *Snapshot {
	for {
		s := r.snapshot.Load()
		if s == nil {
			return nil
		}
		s.users.Add(1)
		if r.snapshot.Load() == s {
			return s
		}
		s.users.Add(-1) // it was replaced just now, and may be gone already
	}
}

// Release ends the use of a Snapshot that Acquire returned.
func (s *Snapshot) Release() { s.users.Add(-1) }
