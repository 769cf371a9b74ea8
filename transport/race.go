// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// maxAttempts bounds the attempts of one call, whatever the budget.
const maxAttempts = 4

// race is one call: its attempts, the first verdict of which counts. Each attempt
// runs on a goroutine of its own to its own end, which is by the deadline; the one
// that decides tells the receiver. Those that lose run on.
type race struct {
	Call                   // a copy: the caller's may be gone while a loser runs
	ctx    context.Context // of the trace
	rules  rules
	to     hook.Receiver
	begin  time.Time
	caller *caller      // whose call it is
	size   int          // of the Message
	timer  *time.Timer  // calls alarm; armed for the hedge, or while held waits
	parts  atomic.Int32 // attempts that run, and the timer while it is armed

	mu       sync.Mutex // guards what follows
	asked    [maxAttempts]*Endpoint
	attempts int
	running  int
	wait     time.Duration // before the next repeat
	redialed bool
	plain    bool  // the plain wording is sent from now on
	misread  error // of an attempt, while it is not known whether it was the form's fault
	armed    bool
	over     bool
	held     ending // an allow that waits for its twin, if holding
	holding  bool
	denial   ending // that was perhaps a misreading; its err is nil if there is none
	decided  bool   // over with an answer, which allowed, or not
	allowed  bool
}

// rules are what is the same for all races of a Client.
type rules struct {
	attempt  func(context.Context, *race, *choice, bool) ending // makes one HTTP try
	start    func(*race, choice)                                // an attempt on a goroutine of its own
	free     func(*race)                                        // when nothing of the race runs any more
	observer Observer
}

// run begins the race. Its receiver is told by the deadline, perhaps before run
// returns.
func (r *race) run(now time.Time) {
	r.begin = now
	r.caller, r.size = r.Target.callers.of(r.Cluster, now), r.Message.Len()
	r.parts.Store(1)
	defer r.leave()
	r.mu.Lock()
	first, ok := r.first(now)
	if !ok && !r.mayWait() {
		r.finish(ending{err: r.nobody()})
		return
	}
	r.parts.Add(1)
	r.mu.Unlock()
	r.rules.start(r, first)
}

// first chooses whom to ask first. It is called under the lock.
func (r *race) first(now time.Time) (choice, bool) {
	first, ok := r.choose()
	if !ok {
		return choice{}, false
	}
	r.caller.budget.first(now)
	if delay, ok := r.hedgeDelay(now); ok {
		r.arm(delay)
	}
	r.enter(&first)
	return first, true
}

// enter counts an attempt that is about to run.
func (r *race) enter(c *choice) {
	r.running++
	c.plain = r.plain
}

// leave ends one part of the race. With the last one the race is free.
func (r *race) leave() {
	if r.parts.Add(-1) == 0 {
		r.rules.free(r)
	}
}

// ended notes how an attempt ended, and returns what to ask next in its place, if
// anything.
func (r *race) ended(c choice, end ending) (next choice, again bool) {
	r.mu.Lock()
	r.running--
	r.noteForm(&end)
	if r.over { // it has lost
		if r.running == 0 {
			r.Message.Release()
		}
		r.mu.Unlock()
		return choice{}, false
	}
	if r.isDoubtful(&end) {
		r.doubt(&end)
		if r.toPlain(&next) {
			r.enter(&next)
			r.mu.Unlock()
			return next, true
		}
		if r.running > 0 { // perhaps in plain JSON
			r.mu.Unlock()
			return choice{}, false
		}
	}
	switch {
	case r.holding:
		r.finish(r.settle(end))
		return choice{}, false
	case end.verdict() && r.Repeat.DenyWins && r.running > 0 && end.allows():
		r.disarm()
		r.held, r.holding = end, true
		r.arm(min(denyGrace, time.Until(r.Deadline)))
		r.mu.Unlock()
		return choice{}, false
	case end.verdict():
		r.finish(end)
		return choice{}, false
	case r.running > 0: // an error never beats a verdict that may still come
		r.mu.Unlock()
		return choice{}, false
	}
	r.disarm()
	if next, again = r.repeat(&end); !again {
		r.finish(end)
		return choice{}, false
	}
	r.enter(&next)
	r.mu.Unlock()
	return next, true
}

// settle decides between the allow that waits and its twin.
func (r *race) settle(twin ending) ending {
	if twin.verdict() && !twin.allows() && !twin.doubtful {
		r.disagree()
		return twin
	}
	return r.held
}

// finish tells the receiver. It is called under the lock, which it gives back.
func (r *race) finish(end ending) {
	r.over = true
	if r.yieldsToDenial(&end) {
		end = r.denial
	}
	r.decided, r.allowed = end.err == nil, end.allows()
	r.disarm()
	if r.running == 0 {
		r.Message.Release()
	}
	r.mu.Unlock()
	if end.err != nil {
		var unusable *hook.CallError
		if errors.As(end.err, &unusable) {
			unusable.Elapsed = time.Since(r.begin)
		}
	}
	r.to.Receive(end.resp, end.err)
}

// disagree counts two verdicts of this call that differ.
func (r *race) disagree() {
	r.Target.stats.disagreements.Add(1)
	r.rules.observer.Disagreed(r.ctx, r.Owner)
}

// lost reports whether the call was decided without this attempt, and counts a
// verdict that contradicts the one that was given.
func (r *race) lost(end *ending) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decided && end.err == nil && end.resp.Allowed != r.allowed {
		r.disagree()
	}
	return r.over
}

// needed reports whether an attempt could still decide something: the call is not
// over, nor is what it was made for. It is called under the lock, without which Over
// may be another call's.
func (r *race) needed() bool { return !r.over && (r.Over == nil || !r.Over.Load()) }

// isNeeded is needed for who does not have the lock.
func (r *race) isNeeded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.needed()
}

// choose picks an Endpoint, one that this call has not asked if there is one. It
// is called under the lock.
func (r *race) choose() (choice, bool) {
	c, ok := r.Target.choose(r.Cluster, r.Resource, r.asked[:r.attempts])
	if ok {
		r.asked[r.attempts] = c.endpoint
		r.attempts++
	}
	return c, ok
}

var errBreakersOpen = errors.New("it has failed lately and is being spared")

// nobody says why there is no Endpoint to ask.
func (r *race) nobody() error {
	t := r.Target
	if len(t.Endpoints()) == 0 {
		return &hook.CallError{Cause: hook.Unreachable, Err: t.whyNoEndpoint()}
	}
	return &hook.CallError{Cause: hook.BreakerOpen, Err: fmt.Errorf("%s: %w", t.host, errBreakersOpen)}
}
