// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
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

const (
	// maxAttempts bounds the attempts of one call, whatever the budget.
	maxAttempts = 4
	// denyGrace is how long an allow waits for its twin under DenyWins.
	denyGrace = 100 * time.Millisecond
	// backoff between attempts under Repeat.Failures, doubled each time, jittered.
	backoff = 10 * time.Millisecond
)

// race is one call: its attempts, the first verdict of which counts. Each attempt
// runs on a goroutine of its own to its own end, which is by the deadline; the one
// that decides tells the receiver. Those that lose run on.
type race struct {
	Call                  // a copy: the caller's may be gone while a loser runs
	ctx   context.Context // of the trace
	rules rules
	to    Receiver
	begin time.Time
	timer *time.Timer  // calls alarm; armed for the hedge, or while held waits
	parts atomic.Int32 // attempts that run, and the timer while it is armed

	mu       sync.Mutex // guards what follows
	asked    [maxAttempts]*Endpoint
	attempts int
	running  int
	wait     time.Duration // before the next repeat
	redialed bool
	plain    bool  // what is asked from now on is sent Call.Plain
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
	attempt  func(context.Context, *Call, choice, bool) ending // makes one HTTP try
	start    func(*race, choice)                               // an attempt on a goroutine of its own
	free     func(*race)                                       // when nothing of the race runs any more
	observer Observer
}

// run begins the race. Its receiver is told by the deadline, perhaps before run
// returns.
func (r *race) run(now time.Time) {
	r.begin = now
	r.parts.Store(1)
	defer r.leave()
	r.mu.Lock()
	first, ok := r.choose()
	if !ok {
		r.finish(ending{err: r.nobody()})
		return
	}
	r.Target.budget.first(now)
	if delay, ok := r.hedgeDelay(now); ok {
		r.arm(delay)
	}
	r.parts.Add(1)
	r.enter(&first)
	r.mu.Unlock()
	r.rules.start(r, first)
}

// enter counts an attempt that is about to run. Until the receiver is told the
// Bodies are its caller's, so that they can be retained.
func (r *race) enter(c *choice) {
	r.running++
	c.plain = r.plain
	if c.plain {
		r.Plain.Retain()
	} else {
		r.Body.Retain()
	}
}

// exit takes back enter.
func (r *race) exit(c *choice) {
	r.running--
	if c.plain {
		r.Plain.Release()
	} else {
		r.Body.Release()
	}
}

// leave ends one part of the race. With the last one the race is free.
func (r *race) leave() {
	if r.parts.Add(-1) == 0 {
		r.rules.free(r)
	}
}

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
	if r.over || r.running != 1 || r.attempts >= maxAttempts || !r.spend((*budget).hedge) {
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
	delay, ok := r.Target.latency.hedgeDelay(now, left)
	return delay, ok && delay < left
}

// follow makes an attempt, and repeats it as long as it fails and may be repeated.
func (r *race) follow(c choice) {
	fresh := false
	for {
		end := r.guarded(c, fresh)
		next, again := r.ended(c, end)
		if !again {
			return
		}
		c, fresh = next, end.stale
	}
}

// ended notes how an attempt ended, and returns what to ask next in its place, if
// anything.
func (r *race) ended(c choice, end ending) (next choice, again bool) {
	r.mu.Lock()
	r.exit(&c)
	r.noteForm(&end)
	if r.over { // it has lost
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
	if twin.verdict() && !twin.allows() && !twin.misread {
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
	r.mu.Unlock()
	if end.err != nil {
		var unusable *CallError
		if errors.As(end.err, &unusable) {
			unusable.Elapsed = time.Since(r.begin)
		}
	}
	r.to.Receive(end.resp, end.err)
}

// repeat chooses whom to ask after a failed attempt, if it may be repeated. It is
// called under the lock, which it gives back while it waits; nothing else of the
// race runs then.
func (r *race) repeat(end *ending) (choice, bool) {
	if !r.mayRepeat(end) {
		return choice{}, false
	}
	if !end.broken() {
		r.mu.Unlock()
		slept := r.sleep()
		r.mu.Lock()
		if !slept {
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
	case r.attempts >= maxAttempts || !time.Now().Before(r.Deadline):
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

// spend takes an extra attempt from the budget by take, one of its methods.
func (r *race) spend(take func(*budget, time.Time) bool) bool {
	ok, spent := r.Target.spend(take)
	if spent {
		r.rules.observer.Refused(r.ctx, r.Owner)
	}
	return ok
}

// disagree counts two verdicts of this call that differ.
func (r *race) disagree() {
	r.Target.stats.disagreements.Add(1)
	r.rules.observer.Disagreed(r.ctx, r.Owner)
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

// sleep waits longer each time, with jitter; it reports false if the call would be
// over by then.
func (r *race) sleep() bool {
	r.wait = max(backoff, 2*r.wait)
	d := r.wait/2 + rand.N(r.wait/2)
	if time.Until(r.Deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	return true
}

// guarded is try, with a panic as a failed attempt.
func (r *race) guarded(c choice, fresh bool) (end ending) {
	defer func() {
		if p := recover(); p != nil {
			end = ending{endpoint: c.endpoint, err: &CallError{Cause: Panic, Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack()}}
		}
	}()
	return r.try(c, fresh)
}

// try makes an attempt, over a fresh connection or any, and tells the Target and
// the breaker how it ended.
func (r *race) try(c choice, fresh bool) ending {
	var (
		t       = r.Target
		begin   = time.Now()
		allowed = r.Deadline.Sub(begin)
		result  = breaker.Excluded
	)
	// Also if the attempt panics, which says nothing about the Endpoint.
	if !t.unspared {
		defer func() { c.ticket.Done(result) }()
	}
	c.endpoint.outstanding.Add(1)
	defer c.endpoint.outstanding.Add(-1)
	t.stats.attempts.Add(1)
	ctx, span := startSpan(r.ctx, t, c.endpoint, c.kind)
	end := r.rules.attempt(ctx, &r.Call, c, fresh)
	now := time.Now()
	if end.pause > 0 {
		t.pause(now.Add(end.pause))
	}
	var median time.Duration // matters to timeouts alone
	if end.kind == breaker.TimedOut {
		median, _, _ = t.latency.quantiles(now)
	}
	lost := r.lost(&end)
	end.plain, end.misread = c.plain, end.misread && !c.plain && !r.Plain.IsZero() && !t.language.isClear(now)
	if result = end.judge(allowed, now.Sub(r.Deadline), median, lost); end.misread {
		result = breaker.Excluded // the same review in another form may be answered
	}
	span.end(&end, lost)
	r.rules.observer.Attempted(ctx, Attempt{Owner: r.Owner, Endpoint: c.endpoint, Kind: c.kind, Start: begin, Elapsed: now.Sub(begin), Err: end.err, Lost: lost})
	if end.answered() {
		t.latency.record(now, now.Sub(begin))
	}
	return end
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

// choose picks an Endpoint, one that this call has not asked if there is one. It
// is called under the lock.
func (r *race) choose() (choice, bool) {
	c, ok := r.Target.choose(r.Resource, r.asked[:r.attempts])
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
		return &CallError{Cause: Unreachable, Err: t.whyNoEndpoint()}
	}
	return &CallError{Cause: BreakerOpen, Err: fmt.Errorf("%s: %w", t.host, errBreakersOpen)}
}
