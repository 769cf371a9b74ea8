// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// race is one call under way. Each of its goroutines takes what has happened to the
// decision and does what that says: an attempt runs to its own end, which is by the
// deadline, and those that lose run on.
type race struct {
	Call                 // a copy: the caller's may be gone while a loser runs
	ctx  context.Context // of the trace
	*common
	to    hook.Receiver
	begin time.Time
	timer *time.Timer
	parts atomic.Int32        // goroutines that take part, and the timer while it is set
	over  atomic.Bool         // as in the decision, for those who do not have the lock
	made  [maxAttempts]choice // the attempts; each belongs to the goroutine that makes it

	mu       sync.Mutex // held by decide alone
	decision decision
	supply   supply
	alarm    time.Time // the decision's for which the timer is set; zero: it is not
	released bool      // the Message is
}

// common is what is the same for all races of a Client.
type common struct {
	exchange func(context.Context, *race, *choice) result // one HTTP try
	adopt    func(*Endpoint)                              // has the Endpoint connect as the Client does
	start    func(*race, step)                            // a step on a goroutine of its own
	free     func(*race)                                  // when nothing of the race runs any more
	observer Observer
}

// run begins the race. Its receiver is notified by the deadline, perhaps before run
// returns.
func (r *race) run(now time.Time) {
	r.begin = now
	r.decision = decision{repeat: r.Repeat, deadline: r.Deadline}
	r.supply = supply{call: &r.Call, caller: r.Target.callers.of(r.Cluster, now), size: r.Message.Len()}
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

// attempt makes one try, and notes what that says of the Target. A panic is a failed
// attempt, and says nothing of it.
func (r *race) attempt(chosen choice) (end result) {
	t, begin := r.Target, time.Now()
	c := &r.made[chosen.number]
	*c = chosen
	judged := breaker.Excluded
	c.endpoint.outstanding.Add(1)
	defer func() {
		if p := recover(); p != nil {
			end = result{err: &hook.CallError{Cause: hook.Panic, Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack()}}
		}
		c.endpoint.outstanding.Add(-1)
		if !t.unspared {
			c.ticket.Done(judged)
		}
	}()
	t.stats.attempts.Add(1)
	ctx, span := startSpan(r.ctx, t, c.endpoint, c.kind)
	end = r.exchange(ctx, r, c)
	now := time.Now()
	if end.pause > 0 {
		r.supply.caller.pause(now.Add(end.pause))
	}
	if end.heard != nil {
		r.switched(end.heard)
	}
	lost := r.over.Load()
	end.plain, end.doubtful = c.plain, end.doubtful && !c.plain && r.Message.IsNegotiated(now)
	if judged = end.judge(now.Sub(r.Deadline), r.isFair(r.Deadline.Sub(begin), now), lost); end.doubtful {
		judged = breaker.Excluded // the same request in another wording may be answered
	}
	if judged == breaker.Failure {
		r.supply.caller.hangs.Store(end.kind == breaker.TimedOut)
	}
	span.end(&end, lost)
	r.observer.Attempted(ctx, Attempt{Owner: r.Owner, Endpoint: c.endpoint, Kind: c.kind, Start: begin, Elapsed: now.Sub(begin), Err: end.err, Lost: lost})
	if end.answered() {
		t.latency.record(now, now.Sub(begin))
		r.supply.caller.durations(r.supply.size).record(now, now.Sub(begin))
	}
	return end
}

// isFair reports whether an attempt that was allowed so much time would have been
// answered by a server that is well: a good part of the Target's own timeout, or
// many times what such requests of the cluster take.
func (r *race) isFair(allowed time.Duration, now time.Time) bool {
	if 3*allowed >= r.Timeout {
		return true
	}
	median, _, ok := r.supply.caller.durations(r.supply.size).quantiles(now)
	return ok && allowed >= 10*median
}

// on takes an event to the decision and returns the step that follows, with what it
// needs, and notifies the observers.
func (r *race) on(e event) step {
	s, learned, last := r.decide(e)
	r.Target.tell()
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
// look at what it takes from: nothing here blocks. last: nothing needs the Message any
// more.
func (r *race) decide(e event) (s step, learned *Switch, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.supply.look(&e)
	s = r.decision.decide(e)
	for !r.supply.grant(&s, e.now) {
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
	if !sleeps {
		r.supply.endWait()
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
