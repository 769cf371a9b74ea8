// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
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

// attempter makes one HTTP try.
type attempter func(call *Call, e *Endpoint, fresh bool) ending

// race is one call: its attempts, the first verdict of which counts. Attempts
// that lose run on to the deadline on their own.
type race struct {
	call    *Call
	attempt attempter
	losers  *sync.WaitGroup

	asked    []*Endpoint
	attempts int
	redialed bool

	endings chan ending
	mu      sync.Mutex // guards what follows
	over    bool
	winner  *codec.Response // nil: there was no verdict
}

// run returns by the call's deadline.
func (r *race) run(now time.Time) (codec.Response, error) {
	first, ok := r.choose()
	if !ok {
		return codec.Response{}, r.nobody()
	}
	r.call.Target.budget.first(now)
	end := r.follow(r.ask(first, now))
	return end.resp, end.err
}

// ask makes an attempt, and hedges it where that may help.
func (r *race) ask(c choice, now time.Time) ending {
	delay, ok := r.hedgeDelay(now)
	if !ok {
		return r.try(c, false)
	}
	return r.hedged(c, delay)
}

// hedgeDelay returns when the attempt that begins now is to be hedged.
func (r *race) hedgeDelay(now time.Time) (time.Duration, bool) {
	repeat, left := r.call.Repeat, r.call.Deadline.Sub(now)
	if !repeat.Safe || repeat.NoHedge || r.attempts > 1 {
		return 0, false
	}
	delay, ok := r.call.Target.latency.hedgeDelay(now, left)
	return delay, ok && delay < left
}

// follow repeats an attempt that failed as long as it may be repeated.
func (r *race) follow(end ending) ending {
	for wait := backoff; ; wait *= 2 {
		if end.verdict() || !r.mayRepeat(&end) {
			return end
		}
		if !end.broken() && !r.sleep(wait) {
			return end
		}
		next, ok := r.choose()
		if !ok {
			return end
		}
		r.call.Target.stats.retries.Add(1)
		end = r.try(next, end.stale)
	}
}

// mayRepeat reports whether a failed attempt may be followed by another, and
// takes it from the budget.
func (r *race) mayRepeat(end *ending) bool {
	t, repeat := r.call.Target, r.call.Repeat
	switch {
	case r.attempts >= maxAttempts || !time.Now().Before(r.call.Deadline):
		return false
	case !repeat.Safe && !end.unsent:
		return false
	case end.unsent && r.others():
		return true // free: nobody was asked so far
	case end.stale && !r.redialed:
		r.redialed = true // free: the webhook closed an idle connection, no more
		return true
	case !repeat.Failures && !(end.broken() && (end.kind == breaker.Reset || r.others())):
		return false
	}
	return t.spend((*budget).take)
}

// others reports whether there is an Endpoint that this call has not asked.
func (r *race) others() bool {
	for _, e := range r.call.Target.Endpoints() {
		if rank(e, r.asked) == 0 {
			return true
		}
	}
	return false
}

// sleep waits with jitter; it reports false if the call would be over by then.
func (r *race) sleep(d time.Duration) bool {
	d = d/2 + rand.N(d/2)
	if time.Until(r.call.Deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	return true
}

// hedged makes an attempt, a second one when the first has taken unusually long,
// and returns the first verdict, or the last failure.
func (r *race) hedged(c choice, delay time.Duration) ending {
	r.endings = make(chan ending, 2)
	r.launch(c)
	running, timer := 1, time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case end := <-r.endings:
			running--
			if end.verdict() {
				return r.decide(end, running)
			}
			if running == 0 {
				return r.decide(end, 0)
			}
		case <-timer.C:
			if running == 1 && r.hedge() {
				running++
			}
		}
	}
}

// hedge launches the second attempt if somebody can be asked and the budget
// allows it; a hedge that is denied never fails the call.
func (r *race) hedge() bool {
	t := r.call.Target
	if !t.spend((*budget).hedge) {
		return false
	}
	second, ok := r.choose()
	if !ok {
		return false
	}
	t.stats.hedges.Add(1)
	r.launch(second)
	return true
}

// decide ends the race with a verdict, or with the last failure. Under DenyWins
// an allow first waits a moment for a twin that is still running.
func (r *race) decide(end ending, running int) ending {
	if r.call.Repeat.DenyWins && running > 0 && end.err == nil && end.resp.Allowed {
		timer := time.NewTimer(min(denyGrace, time.Until(r.call.Deadline)))
		defer timer.Stop()
		select {
		case twin := <-r.endings:
			if twin.verdict() && (twin.err != nil || !twin.resp.Allowed) {
				r.call.Target.stats.disagreements.Add(1)
				end = twin
			}
		case <-timer.C:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = end.verdict() // a failure may be followed by a retry, which is no loser
	if end.err == nil {
		r.winner = &end.resp
	}
	return end
}

// launch makes an attempt in a goroutine of its own, which ends by the deadline.
// It holds the Body from now on: when it gets to run, the call may be over.
func (r *race) launch(c choice) {
	body := r.call.Body.Retain()
	r.losers.Add(1)
	go func() {
		defer r.losers.Done()
		defer body.Release()
		r.endings <- r.guarded(c) // there is room for both
	}()
}

// guarded is try, with a panic as a failed attempt: no caller's frame could
// recover it here.
func (r *race) guarded(c choice) (end ending) {
	defer func() {
		if p := recover(); p != nil {
			end = ending{endpoint: c.endpoint, err: &CallError{Cause: Panic, Err: fmt.Errorf("panic while calling: %v", p)}}
		}
	}()
	return r.try(c, false)
}

// try makes an attempt, over a fresh connection or any, and tells the Target and
// the breaker how it ended.
func (r *race) try(c choice, fresh bool) ending {
	var (
		t       = r.call.Target
		begin   = time.Now()
		allowed = r.call.Deadline.Sub(begin)
		result  = breaker.Excluded
	)
	// Also if the attempt panics, which says nothing about the Endpoint.
	if !t.unspared {
		defer func() { c.ticket.Done(result) }()
	}
	c.endpoint.outstanding.Add(1)
	defer c.endpoint.outstanding.Add(-1)
	t.stats.attempts.Add(1)
	end := r.attempt(r.call, c.endpoint, fresh)
	now := time.Now()
	if end.pause > 0 {
		t.pause(now.Add(end.pause))
	}
	var median time.Duration // matters to timeouts alone
	if end.kind == breaker.TimedOut {
		median, _, _ = t.latency.quantiles(now)
	}
	result = end.judge(allowed, now.Sub(r.call.Deadline), median, r.lost(&end))
	if end.answered() {
		t.latency.record(now, now.Sub(begin))
	}
	return end
}

// answered reports whether the attempt says how long answers take: it got one, or
// waited for one to the end.
func (e *ending) answered() bool { return !e.broken() && !e.unsent }

// lost reports whether the call was decided without this attempt, and counts a
// verdict that contradicts the one that was given.
func (r *race) lost(end *ending) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over && r.winner != nil && end.err == nil && end.resp.Allowed != r.winner.Allowed {
		r.call.Target.stats.disagreements.Add(1)
	}
	return r.over
}

// choose picks an Endpoint, one that this call has not asked if there is one.
func (r *race) choose() (choice, bool) {
	c, ok := r.call.Target.choose(r.call.Resource, r.asked)
	if ok {
		r.asked = append(r.asked, c.endpoint)
		r.attempts++
	}
	return c, ok
}

var errBreakersOpen = errors.New("it has failed lately and is being spared")

// nobody says why there is no Endpoint to ask.
func (r *race) nobody() error {
	t := r.call.Target
	if len(t.Endpoints()) == 0 {
		return &CallError{Cause: Unreachable, Err: t.whyNoEndpoint()}
	}
	return &CallError{Cause: BreakerOpen, Err: fmt.Errorf("%s: %w", t.host, errBreakersOpen)}
}
