// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"
)

// denyGrace is how long an allow waits for its twin under Repeat.DenyWins.
const denyGrace = 100 * time.Millisecond

// arm has alarm called after d. It is called under the lock, while disarmed.
func (r *race) arm(d time.Duration) {
	r.armed = true
	r.parts.Add(1)
	if r.timer == nil {
		r.timer = time.AfterFunc(d, r.alarm)
	} else {
		r.timer.Reset(d)
	}
}

// disarm keeps alarm from being called, or from doing anything if it has begun.
// It is called under the lock, by a part of the race that still runs.
func (r *race) disarm() {
	if r.armed && r.timer.Stop() {
		r.parts.Add(-1)
	}
	r.armed = false
}

// alarm is for when the first attempt has taken unusually long, and for when an
// allow has waited for its twin. It is called on a goroutine of its own.
func (r *race) alarm() {
	defer r.leave()
	r.mu.Lock()
	if !r.armed {
		r.mu.Unlock()
		return
	}
	r.armed = false
	if r.holding {
		r.finish(r.held)
		return
	}
	second, ok := r.hedge()
	if ok {
		r.enter(&second)
	}
	r.mu.Unlock()
	if ok {
		r.follow(second)
	}
}

// hedge chooses whom to ask a second time, if the budget allows it. One that is
// denied never fails the call.
func (r *race) hedge() (choice, bool) {
	if !r.needed() || r.running != 1 || r.attempts >= maxAttempts || !r.spend((*budget).hedge) {
		return choice{}, false
	}
	second, ok := r.choose()
	if ok {
		second.kind = Hedge
		r.Target.stats.hedges.Add(1)
	}
	return second, ok
}

// hedgeDelay returns when the first attempt is to be hedged.
func (r *race) hedgeDelay(now time.Time) (time.Duration, bool) {
	left := r.Deadline.Sub(now)
	if !r.Repeat.Safe || r.Repeat.NoHedge {
		return 0, false
	}
	delay, ok := r.caller.durations(r.size).hedgeDelay(now, left)
	return delay, ok && delay < left
}
