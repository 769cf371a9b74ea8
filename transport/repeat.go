// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"math/rand/v2"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Repeat says whether, and when, one call may ask more than once. The zero value
// asks once; only a review of which not a byte has left is sent again.
type Repeat struct {
	// Safe: the call has no side effects.
	Safe bool
	// NoHedge: no second attempt while the first is under way.
	NoHedge bool
	// Failures: any failed attempt is repeated, not only a broken connection.
	Failures bool
	// DenyWins: while a hedge is under way, an allow waits a moment for a denial.
	DenyWins bool
}

// backoff between attempts under Repeat.Failures, doubled each time, jittered.
const backoff = 10 * time.Millisecond

// repeat chooses whom to ask after a failed attempt, if it may be repeated. It is
// called under the lock, which it gives back while it waits; nothing else of the
// race runs then.
func (r *race) repeat(end *ending) (choice, bool) {
	if !r.mayRepeat(end) {
		return choice{}, false
	}
	if !end.broken() {
		r.mu.Unlock()
		slept := r.sleep(time.Minute)
		r.mu.Lock()
		if !slept || !r.needed() {
			return choice{}, false
		}
	}
	next, ok := r.choose()
	if ok {
		next.kind = Retry
		r.Target.stats.retries.Add(1)
	}
	return next, ok
}

// mayRepeat reports whether a failed attempt may be followed by another, and
// takes it from the budget.
func (r *race) mayRepeat(end *ending) bool {
	switch {
	case r.attempts >= maxAttempts || !r.needed() || !time.Now().Before(r.Deadline):
		return false
	case !r.Repeat.Safe && !end.unsent:
		return false
	case end.unsent && r.others():
		return true // free: nobody was asked so far
	case end.stale && !r.redialed:
		r.redialed = true // free: the webhook closed an idle connection, no more
		return true
	case !r.Repeat.Failures && !(end.broken() && (end.kind == breaker.Reset || r.others())):
		return false
	}
	return r.spend((*budget).take)
}

// spend takes an extra attempt from the cluster's budget by take, one of its
// methods. There is none while the webhook asks the cluster to be spared.
func (r *race) spend(take func(*budget, time.Time) bool) bool {
	now := time.Now()
	if now.UnixNano() < r.caller.spared.Load() {
		return false
	}
	ok := take(&r.caller.budget, now)
	if !ok {
		r.Target.stats.refused.Add(1)
		r.rules.observer.Refused(r.ctx, r.Owner)
	}
	return ok
}

// others reports whether there is an Endpoint that this call has not asked.
func (r *race) others() bool {
	for _, e := range r.Target.Endpoints() {
		if rank(e, r.asked[:r.attempts]) == 0 {
			return true
		}
	}
	return false
}

// sleep waits longer each time, with jitter, up to a limit; it reports false if the
// call would be over by then.
func (r *race) sleep(limit time.Duration) bool {
	r.wait = min(max(backoff, 2*r.wait), limit)
	d := r.wait/2 + rand.N(r.wait/2)
	if time.Until(r.Deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	return true
}
