// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// ask asks the Hook of inv, before following others are asked.
func (a *admission) ask(inv *invocation, following int) {
	if inv.undecided {
		a.shadowLater(inv)
		return
	}
	q := a.question(inv, following)
	if err := a.begin(inv.webhook, q); err != nil {
		a.settleUncalled(inv, a.judge(inv, codec.Response{}, err, 0))
		return
	}
	if q.Shadow {
		a.shadow(inv, q)
		return
	}
	inv.waiting = true
	a.dispatcher.start(inv.startSpan(a.ctx), inv, q)
}

// question is what the Hook of inv is asked, if following others are to be asked after
// it.
func (a *admission) question(inv *invocation, following int) hook.Question {
	w := inv.webhook
	denies, _ := a.failurePolicy(w)
	q := hook.Question{
		View:       a.subject.View,
		Round:      inv.round,
		Repeatable: w.SideEffects.Repeatable(a.Review.DryRun),
		Shadow:     w.Mode == chain.Shadow,
		Wait:       denies == Failed && w.Mode == chain.Enforce,
	}
	q.Deadline, q.Timeout = a.until(w, following)
	return q
}

// until returns when a call of w that begins now must be over, if following
// webhooks are to be called after it: at the end of its own timeout, or earlier,
// so that those get their share of the admission's time. full is how long it might
// take if the caller had left it the time.
//
// A webhook that is ignored when it fails must not starve one that is not
// (kubernetes#128162): where others follow, patience with it is bounded too.
func (a *admission) until(w *chain.Entry, following int) (deadline time.Time, full time.Duration) {
	now := time.Now()
	left := a.Deadline.Sub(now)
	left -= min(hearingTime, left/10)
	full = w.Timeout
	if following > 0 && w.FailurePolicy == chain.Ignore {
		full = min(full, a.dispatcher.impatience)
	}
	return now.Add(min(full, left-reserve(left, following))), full
}

// hearingTime is kept between the end of a call and that of the admission, so that
// what a call tells at its end, such as a denial that it has kept, is still heard.
const hearingTime = 10 * time.Millisecond

// reserve is what is kept of the time that is left for webhooks to be called
// later: a tenth for each, but never more than half.
func reserve(left time.Duration, following int) time.Duration {
	return min(left/2, left/10*time.Duration(following))
}

// start asks the Hook of inv, which may outlive the admission; the answer arrives in
// its batch, by itself or because inv.outstanding is awaited. A panic is a CallError; the
// process lives.
func (d *Dispatcher) start(ctx context.Context, inv *invocation, q hook.Question) {
	inv.begin = time.Now()
	q.Over = &inv.batch.over
	inv.batch.users.Add(1)
	d.calls.Add(1)
	inv.to = hook.NewReceiver(inv, inv.ticket.Load())
	defer func() { inv.contain(recover()) }()
	inv.outstanding = inv.webhook.Hook.Ask(ctx, q, inv.to)
}

// join gives all that have been asked their Outcome: those who answer until the grace
// after the first denial is over, or the deadline has come, by their answers. The answers
// that Hooks would only wait for are awaited first, on this goroutine, in the order in
// which they are due. One that is not there when it is due comes by itself, and so do all
// that are left once somebody denies.
func (a *admission) join() {
	denied := false
	for !denied {
		inv := a.batch.next()
		if inv == nil {
			break
		}
		inv.await()
		denied = a.hearPresent(false)
	}
	a.batch.leave()
	waiting := a.batch.waiting()
	if waiting == 0 {
		return
	}
	left := time.Until(a.Deadline)
	if denied {
		left = min(a.dispatcher.grace, left)
	}
	timer := a.batch.alarm(left)
	defer timer.Stop()
	for waiting > 0 {
		select {
		case inv := <-a.batch.answers:
			if !inv.waiting {
				continue // of those who were given up on
			}
			waiting--
			if a.hear(inv).Denies() && !denied {
				denied = true
				timer.Reset(min(a.dispatcher.grace, time.Until(a.Deadline)))
			}
		case <-timer.C:
			a.settleUnheard(a.hearPresent(denied))
			return
		}
	}
}

// hear gives inv its Outcome, of the answer that has arrived.
func (a *admission) hear(inv *invocation) *Outcome {
	inv.waiting = false
	resp, err, operations := inv.resp, inv.err, 0
	if a.Phase == chain.Mutating {
		if resp.Allowed && resp.Patch != nil && (err == nil || keeps(inv.webhook, err)) {
			var failed error
			if operations, failed = a.apply(inv.webhook, resp.Patch); failed != nil {
				err = failed
			}
		}
		if err != nil {
			resp = codec.Response{Warnings: resp.Warnings, Annotations: resp.Annotations, DroppedAnnotations: resp.DroppedAnnotations}
		}
	}
	o := a.judge(inv, resp, err, inv.elapsed)
	o.Operations = operations
	settled := a.settle(o)
	inv.endSpan(settled)
	return settled
}

// keeps reports whether the patch beside a CallError is applied: the Hook has left out what
// failed, as its failure policy says.
func keeps(w *chain.Entry, err error) bool {
	_, failed := errors.AsType[*hook.CallError](err)
	return failed && w.FailurePolicy == chain.Ignore
}

// hearPresent settles the answers that are there although time is up: a process that
// stood still must not take them for missing. It reports whether anybody denied.
func (a *admission) hearPresent(denied bool) bool {
	for {
		select {
		case inv := <-a.batch.answers:
			denied = inv.waiting && a.hear(inv).Denies() || denied
		default:
			return denied
		}
	}
}

// settleUnheard gives those that were not heard their Outcome: abandoned after
// somebody's denial, timed out otherwise.
func (a *admission) settleUnheard(denied bool) {
	for _, inv := range a.batch.list {
		late, elapsed := inv.waiting, time.Since(inv.begin)
		inv.waiting = false
		switch {
		case !late:
		case denied:
			inv.endSpan(a.settle(Outcome{Webhook: inv.webhook, Position: inv.position, Round: inv.round, Result: Abandoned, Elapsed: elapsed}))
		default:
			err := &hook.CallError{Cause: hook.Timeout, Elapsed: elapsed, Err: errUnheard}
			inv.endSpan(a.settle(a.judge(inv, codec.Response{}, err, elapsed)))
		}
	}
}

// errUnheard is the CallError of a Hook that has not answered by the deadline.
var errUnheard = errors.New("no answer before the caller's deadline")
