// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

const (
	// maxAttempts bounds the attempts of one call, whatever the budget.
	maxAttempts = 4
	// denyGrace is how long an allow waits for its twin under Repeat.DenyWins.
	denyGrace = 100 * time.Millisecond
	// minBackoff is the pause between attempts under Repeat.Failures, and the first
	// between two looks at an open circuit; doubled each time, jittered.
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Minute
	// maxLook is the longest pause between two looks at an open circuit.
	maxLook = 50 * time.Millisecond
	// leastLeft is what must be left of the call's time for an attempt to make sense
	// once a circuit lets it through.
	leastLeft = 5 * time.Millisecond
)

// decision is what is known of one call. It decides what to do next, and does
// nothing itself: no I/O, no clock, no lock.
//
// The first verdict is the answer. An error never beats a verdict that may still
// come. An allow may have to wait for its twin (held). A wording that the Target
// perhaps does not read is given up for the plain one.
type decision struct {
	repeat   Repeat
	deadline time.Time

	attempts int // that were begun
	running  int // of them
	alarm    time.Time
	backoff  time.Duration // the last one
	redialed bool          // over a fresh connection, for free
	failed   result        // what a retry that sleeps follows

	wording wording
	held    result
	holding bool

	over     bool
	answered bool // with a response, which allowed, or not
	allowed  bool
}

// decide returns what to do about an event.
func (d *decision) decide(e event) step {
	switch e.what {
	case ended:
		return d.end(&e)
	case rang:
		return d.ring(&e)
	case woke:
		return d.wake(&e)
	case unavailable:
		return d.without(&e)
	case begun:
	}
	return d.first(&e)
}

// first makes the first attempt, which is hedged if it takes unusually long.
func (d *decision) first(e *event) step {
	if e.hedge > 0 {
		d.alarm = e.now.Add(e.hedge)
	}
	return d.make(step{choice: choice{kind: First}})
}

// make makes an attempt.
func (d *decision) make(s step) step {
	d.attempts++
	d.running++
	s.do, s.plain = attempt, d.wording.plain
	return s
}

// without decides what to do as a step cannot be taken. A hedge that is denied never
// fails the call.
func (d *decision) without(e *event) step {
	s := e.refused
	if s.do == attempt {
		d.attempts--
		d.running--
	}
	switch {
	case s.kind == Hedge:
		return step{}
	case s.kind == First && s.do == attempt:
		d.alarm = time.Time{}
		return d.look(e)
	case s.kind == First:
		return d.answer(result{err: errNobody})
	case s.fallback:
		return d.fallenBack(e, s.end)
	}
	return d.answer(s.end)
}

// look sleeps until the next look at a circuit that is open.
func (d *decision) look(e *event) step {
	pause, ok := d.pause(e, maxLook)
	if !ok {
		return d.answer(result{err: errNobody})
	}
	return step{do: sleep, pause: pause}
}

// pause returns a pause that is longer each time, up to a limit; ok is false if the
// call would be over by then.
func (d *decision) pause(e *event, limit time.Duration) (pause time.Duration, ok bool) {
	d.backoff = min(max(minBackoff, 2*d.backoff), limit)
	pause = d.backoff/2 + time.Duration(e.jitter*float64(d.backoff/2))
	return pause, d.deadline.Sub(e.now) > pause
}

// wake decides after a sleep: before the first attempt, or between two.
func (d *decision) wake(e *event) step {
	switch {
	case d.attempts > 0 && e.unneeded:
		return d.answer(d.failed)
	case d.attempts > 0:
		return d.make(step{choice: again(&d.failed), end: d.failed})
	case e.unneeded, !e.reachable, d.deadline.Sub(e.now) < leastLeft:
		return d.answer(result{err: errNobody})
	}
	return d.first(e)
}

// ring decides when the alarm rings: the first attempt has taken unusually long, alone
// or followed by one in the plain wording; or an allow has waited for its twin. It may
// have been set anew, or stopped, since.
func (d *decision) ring(e *event) step {
	if d.alarm.IsZero() || e.now.Before(d.alarm) {
		return step{}
	}
	d.alarm = time.Time{}
	switch {
	case d.holding:
		return d.answer(d.held)
	case e.unneeded:
		return step{}
	}
	return d.make(step{choice: choice{kind: Hedge}, price: hedgePrice})
}

// end decides when an attempt has ended.
func (d *decision) end(e *event) step {
	d.running--
	end := e.end
	lesson, doubted := d.wording.learn(&end)
	var s step
	switch {
	case d.over: // it has lost
		s.disagreed = d.answered && end.err == nil && end.resp.Allowed != d.allowed
	case !d.wording.doubts(&end):
		s = d.settle(e, end)
	default:
		s = d.fallBack(e, end)
	}
	if lesson != 0 {
		s.lesson, s.doubted = lesson, doubted
	}
	return s
}

// settle decides about the end of an attempt that is not in doubt, or that cannot
// be made up for.
func (d *decision) settle(e *event, end result) step {
	switch {
	case d.holding && end.verdict() && !end.allows() && !end.doubtful:
		s := d.answer(end)
		s.disagreed = true
		return s
	case d.holding:
		return d.answer(d.held)
	case end.allows() && d.repeat.DenyWins && d.running > 0:
		d.held, d.holding = end, true
		d.alarm = e.now.Add(min(denyGrace, d.deadline.Sub(e.now)))
		return step{}
	case end.verdict():
		return d.answer(end)
	case d.running > 0: // an error never beats a verdict that may still come
		return step{}
	}
	return d.retry(e, end)
}

// retry decides what follows when the last attempt under way has failed.
func (d *decision) retry(e *event, end result) step {
	d.alarm = time.Time{}
	s := step{choice: again(&end), end: end}
	switch {
	case !d.mayAttempt(e), !d.repeat.Safe && !end.unsent:
		return d.answer(end)
	case end.unsent && e.others: // nobody was called so far
	case end.stale && !d.redialed: // the server closed an idle connection, no more
		d.redialed = true
	case !d.repeat.Failures && !(end.broken() && (end.kind == breaker.Reset || e.others)):
		return d.answer(end)
	default:
		s.price = retryPrice
	}
	if end.broken() {
		return d.make(s)
	}
	var ok bool
	if s.pause, ok = d.pause(e, maxBackoff); !ok {
		return d.answer(end)
	}
	s.do, d.failed = sleep, end
	return s
}

// again is the attempt after one that failed.
func again(end *result) choice { return choice{kind: Retry, fresh: end.stale} }

// mayAttempt reports whether there may be another attempt at all.
func (d *decision) mayAttempt(e *event) bool {
	return d.attempts < maxAttempts && !e.unneeded && e.now.Before(d.deadline)
}

// fallBack has the plain wording sent from now on, and at once if the attempt may be
// repeated. That takes nothing from the budget: a verdict would be lost by the wording
// alone, and it happens to the calls under way when the first of them finds out, and
// to no more of that Target for a while, whether the wording was at fault or not.
func (d *decision) fallBack(e *event, end result) step {
	if end.doubtful && end.verdict() && !d.held.plain {
		d.wording.denial = end
		if d.holding { // an allow in the same wording: no better
			d.alarm, d.holding = time.Time{}, false
		}
	}
	if d.wording.plain {
		return d.undecided(e, end)
	}
	d.wording.plain = true
	if d.repeat.Safe && d.mayAttempt(e) {
		return d.make(step{choice: again(&end), fallback: true, end: end})
	}
	return d.fallenBack(e, end)
}

// fallenBack decides about the end of an attempt that is in doubt, as there is none
// in the plain wording.
func (d *decision) fallenBack(e *event, end result) step {
	doubted := d.wording.giveUp()
	s := d.undecided(e, end)
	s.lesson, s.doubted = Misread, doubted
	return s
}

func (d *decision) undecided(e *event, end result) step {
	if d.running > 0 { // perhaps in the plain wording
		return step{}
	}
	return d.settle(e, end)
}

// answer ends the call with end, or with the denial that was perhaps a misreading
// where the plain wording has brought no verdict.
func (d *decision) answer(end result) step {
	end = d.wording.final(end)
	d.over, d.alarm = true, time.Time{}
	d.answered, d.allowed = end.err == nil, end.allows()
	return step{do: answer, end: end}
}
