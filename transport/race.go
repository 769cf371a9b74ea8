// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// race is one call under way. Each of its goroutines takes what has happened to the
// decision and does what that says: an attempt runs to its own end, which is by the
// deadline, and those that lose run on.
type race struct {
	Call                 // a copy: the caller's may be gone while a loser runs
	ctx  context.Context // of the trace
	*rules
	to     hook.Receiver
	begin  time.Time
	caller *caller // whose call it is
	size   int     // of the Message
	timer  *time.Timer
	parts  atomic.Int32 // goroutines that take part, and the timer while it is set
	over   atomic.Bool  // as in the decision, for those who do not have the lock

	mu       sync.Mutex // held by decide alone
	decision decision
	alarm    time.Time // the decision's for which the timer is set; zero: it is not
	waits    bool      // with a permit of the caller's to wait for a circuit
	released bool      // the Message is
	called   [maxAttempts]*Endpoint
}

// rules are what is the same for all races of a Client.
type rules struct {
	exchange func(context.Context, *race, *choice) result // one HTTP try
	start    func(*race, step)                            // a step on a goroutine of its own
	free     func(*race)                                  // when nothing of the race runs any more
	observer Observer
}

// run begins the race. Its receiver is notified by the deadline, perhaps before run
// returns.
func (r *race) run(now time.Time) {
	r.begin = now
	r.caller, r.size = r.Target.callers.of(r.Cluster, now), r.Message.Len()
	r.decision = decision{repeat: r.Repeat, deadline: r.Deadline}
	r.parts.Store(1)
	defer r.leave()
	if s := r.on(event{what: begun}); s.do == answer {
		r.answer(&s)
	} else {
		r.parts.Add(1)
		r.start(r, s)
	}
}

// follow does what is decided until there is nothing to do on this goroutine.
func (r *race) follow(s step) {
	defer r.leave()
	for {
		switch s.do {
		case wait:
			return
		case answer:
			r.answer(&s)
			return
		case sleep:
			<-time.After(s.pause)
			s = r.on(event{what: woke})
		case attempt:
			s = r.on(event{what: ended, end: r.attempt(s.choice)})
		}
	}
}

// leave ends one part of the race. With the last one the race is free.
func (r *race) leave() {
	if r.parts.Add(-1) == 0 {
		r.free(r)
	}
}

// on takes an event to the decision and returns the step that follows, with what it
// needs, and notifies the observer.
func (r *race) on(e event) step {
	s, learned, last := r.decide(e)
	if last {
		r.Message.Release()
	}
	if s.denied {
		r.observer.Refused(r.ctx, r.Owner)
	}
	if s.disagreed {
		r.Target.stats.disagreements.Add(1)
		r.observer.Disagreed(r.ctx, r.Owner)
	}
	if s.lesson == Misread {
		r.Target.stats.misread.Add(1)
		r.observer.Misread(r.ctx, r.Owner)
	}
	if learned != nil {
		learned.Err = s.doubted
		r.switched(learned)
	}
	return s
}

// decide has the decision made. What is taken under its lock takes no longer than a
// look at what it takes from: nothing here blocks. A circuit that a ticket changes is
// notified of here, which must not wait. last: nothing needs the Message any more.
func (r *race) decide(e event) (s step, learned *Switch, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(&e)
	s = r.decision.decide(e)
	for !r.grant(&s, e.now) {
		refused := s
		e.what, e.refused = unavailable, refused
		s = r.decision.decide(e)
		s.denied = refused.denied
		if s.lesson == 0 {
			s.lesson, s.doubted = refused.lesson, refused.doubted
		}
	}
	if s.lesson != 0 {
		learned = r.Message.Learn(s.lesson, e.now)
	}
	return s, learned, r.obey(e.now, s.do == sleep)
}

// look fills in what the decision has to know of the world for an event.
func (r *race) look(e *event) {
	e.now = time.Now()
	e.unneeded = r.Over != nil && r.Over.Load()
	switch {
	case e.end.err != nil:
		e.others, e.jitter = r.others(), rand.Float64()
	case r.decision.attempts == 0:
		e.reachable = e.what == begun || r.Target.isReachable()
		e.hedge, e.jitter = r.hedgeDelay(e.now), rand.Float64()
	}
}

// grant takes what a step needs. It reports false if that is not to be had.
func (r *race) grant(s *step, now time.Time) bool {
	if s.do == sleep && s.kind == First {
		return r.mayWait()
	}
	if s.do != attempt && s.do != sleep {
		return true
	}
	if !r.pay(s, now) {
		return false
	}
	return s.do == sleep || r.choose(s, now)
}

// pay takes an extra attempt from the cluster's budget. There is none while the
// server asks the cluster for a pause.
func (r *race) pay(s *step, now time.Time) bool {
	if s.price == free {
		return true
	}
	if now.UnixNano() < r.caller.spared.Load() {
		return false
	}
	take := r.caller.budget.take
	if s.price == hedgePrice {
		take = r.caller.budget.hedge
	}
	if !take(now) {
		r.Target.stats.refused.Add(1)
		s.denied = true
	}
	return !s.denied
}

// choose picks an Endpoint, one that this call has not called if there is one.
func (r *race) choose(s *step, now time.Time) bool {
	before := r.decision.attempts - 1
	var ok bool
	if s.endpoint, s.ticket, ok = r.Target.choose(r.Cluster, r.Resource, r.called[:before]); !ok {
		return false
	}
	r.called[before] = s.endpoint
	switch s.kind {
	case First:
		r.caller.budget.first(now)
	case Retry:
		r.Target.stats.retries.Add(1)
	case Hedge:
		r.Target.stats.hedges.Add(1)
	}
	return true
}

// others reports whether there is an Endpoint that this call has not called.
func (r *race) others() bool {
	for _, e := range r.Target.Endpoints() {
		if rank(e, r.called[:r.decision.attempts]) == 0 {
			return true
		}
	}
	return false
}

// mayWait reports whether the call, which no circuit lets through, waits for one.
// That is for a Target that hangs, for which a direct call would wait as well: one
// that cannot be reached, or that answers with errors, says so at once.
func (r *race) mayWait() bool {
	if !r.waits {
		r.waits = r.Wait && r.caller.hangs.Load() && r.Target.isReachable() && r.caller.enterWait()
	}
	return r.waits
}

// hedgeDelay returns after what time the first attempt is hedged; 0: it is not.
func (r *race) hedgeDelay(now time.Time) time.Duration {
	if !r.Repeat.Safe || r.Repeat.NoHedge {
		return 0
	}
	left := r.Deadline.Sub(now)
	if delay := r.caller.durations(r.size).hedgeDelay(now, left); delay < left {
		return delay
	}
	return 0
}

// obey has the timer and the permit to wait be as is decided. last: the Message is to
// be released.
func (r *race) obey(now time.Time, sleeps bool) (last bool) {
	d := &r.decision
	if r.alarm != d.alarm {
		if !r.alarm.IsZero() && r.timer.Stop() {
			r.parts.Add(-1)
		}
		if r.alarm = d.alarm; !r.alarm.IsZero() {
			r.parts.Add(1)
			r.set(d.alarm.Sub(now))
		}
	}
	if r.waits && !sleeps {
		r.waits = false
		r.caller.waiting.Add(-1)
	}
	r.over.Store(d.over)
	last = d.over && d.running == 0 && !r.released
	r.released = r.released || last
	return last
}

// set has the alarm ring after a while, on a goroutine of its own.
func (r *race) set(after time.Duration) {
	if r.timer != nil {
		r.timer.Reset(after)
		return
	}
	r.timer = time.AfterFunc(after, func() { r.follow(r.on(event{what: rang})) })
}

// isNeeded reports whether an attempt could still decide something: the call is not
// over, nor is what it was made for. Over is looked at first: once the receiver is
// notified it may be another call's.
func (r *race) isNeeded() bool {
	unneeded := r.Over != nil && r.Over.Load()
	return !unneeded && !r.over.Load()
}

func (r *race) switched(s *Switch) {
	s.Owner, s.Target = r.Owner, r.Target
	r.observer.Switched(r.ctx, *s)
}

// answer notifies the receiver.
func (r *race) answer(s *step) {
	err := s.end.err
	if errors.Is(err, errNobody) {
		err = r.nobody()
	}
	if unusable, ok := errors.AsType[*hook.CallError](err); ok {
		unusable.Elapsed = time.Since(r.begin)
	}
	r.to.Receive(s.end.resp, err)
}

var errBreakersOpen = errors.New("it has failed lately and is being spared")

// nobody says why there is no Endpoint to call.
func (r *race) nobody() error {
	t := r.Target
	if len(t.Endpoints()) == 0 {
		return &hook.CallError{Cause: hook.Unreachable, Err: t.whyNoEndpoint()}
	}
	return &hook.CallError{Cause: hook.BreakerOpen, Err: fmt.Errorf("%s: %w", t.host, errBreakersOpen)}
}
