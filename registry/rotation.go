// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/transport"
)

const (
	probesAtOnce = 32
	// maxAlive is how many Snapshots there are at a time, the current one included:
	// each may hold the memory of a whole configuration.
	maxAlive      = 3
	drainInterval = 10 * time.Millisecond // between two looks whether one has gone
)

// rotation is what follows a new Snapshot: Targets that must answer first, and
// those that leave. It is guarded by the Registry's lock.
type rotation struct {
	whole    *Snapshot   // of the sources, with everything that is pending
	silent   unanswered  // of whole
	asked    bool        // just now
	previous []*Snapshot // that admissions may still use, oldest first
	// proven are the living Targets that have answered a probe, or took part in a cold
	// start. They are not probed again, whatever Snapshot has them.
	proven map[*transport.Target]bool
}

// rotate swaps next in, without what is pending, when older Snapshots have made
// room.
func (r *Registry) rotate(next *Snapshot) {
	current := r.Snapshot()
	if current == nil {
		// A restart must never switch a policy off: everything takes part, and for
		// what is down its failure policy speaks.
		r.rotation = rotation{whole: next, silent: unanswered{}, proven: map[*transport.Target]bool{}}
		r.prove(next.Targets)
		r.snapshot.Store(next)
		r.changed(Change{Snapshot: next})
		return
	}
	r.rotation.whole = next
	unproven := r.unproven(next)
	r.rotation.silent = r.probe(unproven)
	r.rotation.asked = true
	r.prove(unproven)
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
	var silent []*transport.Target
	for _, t := range r.rotation.whole.Targets {
		if _, ok := r.rotation.silent[t.Identity()]; ok {
			silent = append(silent, t)
		}
	}
	still := r.probe(silent)
	if len(still) < len(r.rotation.silent) {
		r.rotation.silent = still
		r.prove(silent)
		if next := withheld(r.rotation.whole, r.Snapshot(), still); next.Hash != r.Snapshot().Hash {
			r.swap(next)
			r.logLoaded(next)
		}
	}
}

// unproven returns the Targets of next that have never answered.
func (r *Registry) unproven(next *Snapshot) []*transport.Target {
	var list []*transport.Target
	for _, t := range next.Targets {
		if !r.rotation.proven[t] {
			list = append(list, t)
		}
	}
	return list
}

// prove notes those of the Targets that were probed just now and are not silent.
func (r *Registry) prove(targets []*transport.Target) {
	for _, t := range targets {
		if _, silent := r.rotation.silent[t.Identity()]; !silent {
			r.rotation.proven[t] = true
		}
	}
}

// probe asks Targets, a few at a time, and returns those that do not answer.
func (r *Registry) probe(targets []*transport.Target) unanswered {
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

// swap makes next the current Snapshot, in place of the one that is.
func (r *Registry) swap(next *Snapshot) {
	for r.reap(); len(r.rotation.previous) >= maxAlive-1; r.reap() {
		<-time.After(drainInterval) // no admission lasts longer than its deadline
	}
	r.rotation.previous = append(r.rotation.previous, r.snapshot.Swap(next))
	r.changed(Change{Snapshot: next})
	for _, p := range next.Pending {
		r.settings.Logger.Warn("webhook is pending", "webhook", p.Webhook, "url", p.URL, "previous_version_serves", p.Previous, "reason", p.Err.Error())
	}
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
	done := map[*transport.Target]bool{} // needed, or looked at already
	for _, s := range r.alive() {
		for _, t := range s.Targets {
			done[t] = true
		}
	}
	leaving := slices.Clone(r.Draining())
	for _, s := range gone {
		leaving = append(leaving, s.Targets...)
	}
	var still []*transport.Target
	for _, t := range leaving {
		switch {
		case done[t]:
		case t.Outstanding() > 0:
			still = append(still, t)
		default:
			t.Close()
			delete(r.rotation.proven, t)
			r.settings.Logger.Info("webhook target is drained, safe to stop", "url", t.URL())
		}
		done[t] = true
	}
	r.leaving.Store(&still)
}

// alive returns the Snapshots that are served, about to be or still in use; none
// before the first.
func (r *Registry) alive() []*Snapshot {
	list := slices.Clone(r.rotation.previous)
	for _, s := range []*Snapshot{r.Snapshot(), r.rotation.whole} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// living returns the Targets that are not closed: of one identity there is one,
// whose connections and health outlive every Snapshot. One may come several times.
func (r *Registry) living() []*transport.Target {
	list := slices.Clone(r.Draining())
	for _, s := range r.alive() {
		list = append(list, s.Targets...)
	}
	return list
}

// Draining returns the Targets that have left the configuration and still have
// calls under way. It does not wait for a load: readiness asks it.
func (r *Registry) Draining() []*transport.Target {
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
