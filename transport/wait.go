// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

const (
	// maxWaiting is how many calls of one cluster wait for a circuit of one Target;
	// further ones fail at once.
	maxWaiting = 16
	// waitStep is the longest time between two looks.
	waitStep = 50 * time.Millisecond
	// waitLeft is what must be left of the call's time for an attempt to make sense.
	waitLeft = 5 * time.Millisecond
)

// mayWait reports whether the call, which no circuit lets through, waits for one.
// That is for a webhook that hangs, for which a direct call would wait as well: one
// that cannot be reached, or that answers with errors, says so at once.
func (r *race) mayWait() bool {
	if !r.Wait || !r.caller.hangs.Load() || !r.Target.isReachable() {
		return false
	}
	if r.caller.waiting.Add(1) > maxWaiting {
		r.caller.waiting.Add(-1)
		return false
	}
	return true
}

// await waits for a circuit that lets the call through. The call may then be the
// probe that finds the webhook well again.
func (r *race) await() (choice, bool) {
	defer r.caller.waiting.Add(-1)
	for r.sleep(waitStep) && r.isNeeded() && r.Target.isReachable() {
		if time.Until(r.Deadline) < waitLeft {
			break
		}
		r.mu.Lock()
		first, ok := r.first(time.Now())
		r.mu.Unlock()
		if ok {
			return first, true
		}
	}
	r.mu.Lock()
	r.finish(ending{err: r.nobody()})
	return choice{}, false
}

// isReachable reports whether an Endpoint's own circuit lets attempts through.
func (t *Target) isReachable() bool {
	for _, e := range t.Endpoints() {
		if s := e.breaker.State(); s == breaker.Closed || s == breaker.Ramping {
			return true
		}
	}
	return false
}
