// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// supply is what the attempts of one call take from the world, which may not have it:
// Endpoints whose circuits let them through, extra attempts of the cluster's budget, and
// the permit to wait for a circuit. What changes is used under the race's lock, and nothing
// here blocks.
type supply struct {
	call     *Call
	caller   *caller                // whose call it is
	size     int                    // of the Message
	called   [maxAttempts]*Endpoint // by attempts
	attempts int
	waits    bool // with a permit of the caller's
	// patience is how long who asked may await the answer to the first attempt; 0: it
	// does not make that.
	patience time.Duration
}

const (
	// maxPatience bounds how long an admission awaits one webhook before it hears what
	// others have answered.
	maxPatience = 50 * time.Millisecond
	// maxHasty is the size up to which who asks sends a request itself: those behind it
	// are sent when it is encrypted and written.
	maxHasty = 16 << 10
)

// look fills in what the decision has to know of the world for an event.
func (u *supply) look(e *event) {
	if e.now.IsZero() {
		e.now = time.Now()
	}
	e.unneeded = u.call.Over != nil && u.call.Over.Load()
	switch {
	case e.end.err != nil:
		e.others, e.jitter = u.others(), rand.Float64()
	case u.attempts == 0:
		e.reachable = e.what == begun || u.call.Target.isReachable()
		e.jitter = rand.Float64()
		u.plan(e)
	}
}

// grant takes what a step needs. It reports false if that is not to be had.
func (u *supply) grant(s *step, now time.Time) bool {
	if s.do == sleep && s.kind == First {
		return u.mayWait()
	}
	if s.do != attempt && s.do != sleep {
		return true
	}
	if !u.pay(s, now) {
		return false
	}
	return s.do == sleep || u.choose(s, now)
}

// pay takes an extra attempt from the cluster's budget. There is none while the
// server asks the cluster for a pause.
func (u *supply) pay(s *step, now time.Time) bool {
	if s.price == free {
		return true
	}
	if now.UnixNano() < u.caller.spared.Load() {
		return false
	}
	take := u.caller.budget.take
	if s.price == hedgePrice {
		take = u.caller.budget.hedge
	}
	if !take(now) {
		u.call.Target.stats.refused.Add(1)
		s.denied = true
	}
	return !s.denied
}

// choose picks an Endpoint, one that this call has not called if there is one.
func (u *supply) choose(s *step, now time.Time) bool {
	var ok bool
	if s.endpoint, s.ticket, ok = u.call.Target.choose(u.call.Cluster, u.call.Resource, u.called[:u.attempts]); !ok {
		return false
	}
	u.called[u.attempts], s.number = s.endpoint, u.attempts
	u.attempts++
	switch s.kind {
	case First:
		u.caller.budget.first(now)
	case Retry:
		u.call.Target.stats.retries.Add(1)
	case Hedge:
		u.call.Target.stats.hedges.Add(1)
	}
	return true
}

// others reports whether there is an Endpoint that this call has not called.
func (u *supply) others() bool {
	for _, e := range u.call.Target.Endpoints() {
		if rank(e, u.called[:u.attempts]) == 0 {
			return true
		}
	}
	return false
}

// mayWait reports whether the call, which no circuit lets through, waits for one.
// That is for a Target that hangs, for which a direct call would wait as well: one
// that cannot be reached, or that answers with errors, says so at once.
func (u *supply) mayWait() bool {
	if !u.waits {
		u.waits = u.call.Wait && u.caller.hangs.Load() && u.call.Target.isReachable() && u.caller.enterWait()
	}
	return u.waits
}

// plan decides after what time the first attempt is hedged, if it is, and how long who
// asked may await its answer: until the hedge at most, and not at all where answers
// usually take long. Where nothing is known that is short: those who are awaited next would
// be taken for as slow.
func (u *supply) plan(e *event) {
	left := u.call.Deadline.Sub(e.now)
	usual := u.caller.durations(u.size).hedgeDelay(e.now, left)
	if u.call.Repeat.Safe && !u.call.Repeat.NoHedge && usual < left {
		e.hedge = usual
	}
	u.patience = 0
	if usual <= maxPatience && left > maxPatience && u.size <= maxHasty {
		u.patience = cmp.Or(usual, hedgeFloor)
	}
}

// endWait gives back the permit to wait, if there is one.
func (u *supply) endWait() {
	if u.waits {
		u.waits = false
		u.caller.waiting.Add(-1)
	}
}
