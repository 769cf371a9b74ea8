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
// deadline, and those that lose run on. Who asked is the first of these goroutines: it
// sends the first request and awaits the answer as long as all is well, and hands over to
// a worker where that is not so (docs/decisions/0023-answers-are-awaited.md).
type race struct {
	Call                 // a copy: the caller's may be gone while a loser runs
	ctx  context.Context // of the trace
	*common
	to    hook.Receiver
	begin time.Time
	timer *time.Timer
	parts atomic.Int32     // goroutines that take part, who asked among them, and the timer while it is set
	over  atomic.Bool      // as in the decision, for those who do not have the lock
	made  [maxAttempts]try // the attempts; each belongs to the goroutine that makes it
	due   time.Time        // until when who asked may await the answer to the first

	mu       sync.Mutex // held by decide and detach
	decision decision
	supply   supply
	alarm    time.Time // the decision's for which the timer is set; zero: it is not
	awaited  bool      // who asked takes part, and no timer is set: it hands over in time
	released bool      // the Message is
}

// common is what is the same for all races of a Client.
type common struct {
	exchange func(*race, *try, extent) (end result, ended bool) // one HTTP try
	adopt    func(*Endpoint)                                    // has the Endpoint connect as the Client does
	start    func(*race, step)                                  // follow, on a worker
	free     func(*race)                                        // when nothing of the race runs any more
	observer Observer
}

// run begins the race. Its receiver is notified by the deadline, perhaps before run
// returns. outstanding: the request is sent, and who asked still takes part, until it
// calls Await or Leave. It does not wait for a webhook.
func (r *race) run(now time.Time) (outstanding bool) {
	r.begin = now
	r.decision = decision{repeat: r.Repeat, deadline: r.Deadline}
	r.supply = supply{call: &r.Call, caller: r.Target.callers.of(r.Cluster, now), size: r.Message.Len()}
	r.parts.Store(1)
	r.awaited = true
	s := r.on(event{what: begun, now: now})
	if s.do == attempt && r.supply.patience > 0 {
		r.due = now.Add(r.supply.patience)
		t := r.open(&s.choice, now)
		end, done := r.attempt(t, toSend)
		if !done && t.sent {
			return true
		}
		if done {
			s = r.on(event{what: ended, end: end, now: t.ended})
		}
	}
	r.proceed(s)
	return false
}

// proceed ends the part of who asked: it answers itself, and has a worker do any other
// step in its place.
func (r *race) proceed(s step) {
	if s.do == answer {
		r.answer(&s)
		r.leave()
		return
	}
	r.detach(time.Now())
	r.start(r, s) // its part is the worker's now
}

// Due implements hook.Outstanding.
func (r *race) Due() time.Time { return r.due }

// Await implements hook.Outstanding. r may be another call's when it returns.
func (r *race) Await() {
	t := &r.made[0]
	end, done := r.attempt(t, toListen)
	if !done {
		r.Leave()
		return
	}
	r.proceed(r.on(event{what: ended, end: end, now: t.ended}))
}

// Leave implements hook.Outstanding. A worker goes on with the first attempt.
func (r *race) Leave() { r.proceed(step{do: attempt}) }

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
			t := &r.made[s.number]
			if t.endpoint == nil { // otherwise who asked has begun it
				t = r.open(&s.choice, time.Now())
			}
			end, _ := r.attempt(t, toEnd)
			s = r.on(event{what: ended, end: end, now: t.ended})
		}
	}
}

// leave ends one part of the race. With the last one the race is free.
func (r *race) leave() {
	if r.parts.Add(-1) == 0 {
		r.free(r)
	}
}

// open begins an attempt.
func (r *race) open(chosen *choice, now time.Time) *try {
	t := &r.made[chosen.number]
	*t = try{choice: *chosen, begin: now}
	t.endpoint.outstanding.Add(1)
	r.Target.stats.attempts.Add(1)
	t.ctx, t.span = startSpan(r.ctx, r.Target, t.endpoint, t.kind)
	return t
}

// attempt makes an attempt as far as it is to be made, and when it has ended notes what
// that says of the Target. A panic is a failed attempt, and says nothing of it.
func (r *race) attempt(t *try, how extent) (end result, done bool) {
	judged := breaker.Excluded
	defer func() {
		if p := recover(); p != nil {
			end, done = result{err: &hook.CallError{Cause: hook.Panic, Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack()}}, true
		}
		if !done {
			return
		}
		t.close(&r.Call)
		t.endpoint.outstanding.Add(-1)
		if !r.Target.unspared {
			t.ticket.Done(judged)
		}
	}()
	if end, done = r.exchange(r, t, how); done {
		judged = r.judge(t, &end)
	}
	return end, done
}

// judge notes what the end of an attempt says of the Target.
func (r *race) judge(t *try, end *result) breaker.Result {
	now := t.ended
	took := now.Sub(t.begin)
	if end.pause > 0 {
		r.supply.caller.pause(now.Add(end.pause))
	}
	if end.heard != nil {
		r.switched(end.heard)
	}
	lost := r.over.Load()
	end.plain, end.doubtful = t.plain, end.doubtful && !t.plain && r.Message.IsNegotiated(now)
	judged := end.judge(now.Sub(r.Deadline), r.isFair(r.Deadline.Sub(t.begin), now), lost)
	if end.doubtful {
		judged = breaker.Excluded // the same request in another wording may be answered
	}
	if judged == breaker.Failure {
		r.supply.caller.hangs.Store(end.kind == breaker.TimedOut)
	}
	t.endpoint.record.note(end, judged, now)
	t.span.end(end, lost)
	r.observer.Attempted(t.ctx, Attempt{Owner: r.Owner, Endpoint: t.endpoint, Kind: t.kind, Start: t.begin, Elapsed: took, Err: end.err, Lost: lost})
	if end.answered() {
		r.Target.latency.record(now, took)
		r.supply.caller.durations(r.supply.size).record(now, took)
	}
	return judged
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

// detach has the race go on without who asked: the timer is set, for an alarm that may be
// past.
func (r *race) detach(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited = false
	r.obey(now, r.supply.waits)
}

// obey has the timer, unless who asked takes part, and the permit to wait be as is
// decided. last: the Message is to be released.
func (r *race) obey(now time.Time, sleeps bool) (last bool) {
	d := &r.decision
	if r.alarm != d.alarm && !r.awaited {
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
