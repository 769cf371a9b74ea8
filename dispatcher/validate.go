// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// errUnheard is the CallError of a webhook that has not answered by the deadline.
var errUnheard = errors.New("no answer before the caller's deadline")

// validate asks all matching webhooks at once; those of the Transactional stage
// after all others, and only if everything else allowed. What is denied before
// any call is sent to nobody.
func (d *Dispatcher) validate(a *admission) {
	var buf [16]int
	candidates := a.candidates(buf[:0])
	if len(candidates) == 0 {
		return
	}
	a.batch = d.newBatch()
	defer a.batch.close()
	last := 0
	for _, i := range candidates {
		if inv := a.consider(i, 0); inv != nil && inv.webhook.Stage == chain.StageTransactional {
			last++
		}
	}
	if a.denied() {
		return
	}
	a.subject.Forget()
	a.batch.makeRoom()
	a.outcomes = slices.Grow(a.outcomes, len(a.batch.list))
	d.fanOut(a, chain.StageValidating, last)
	if last > 0 && !a.denied() {
		d.fanOut(a, chain.StageTransactional, 0)
	}
}

// consider matches the webhook at position against the object as it is now and
// returns its invocation, or nil where it is not to be called. A webhook that
// should have been called but cannot be gets its Outcome.
func (a *admission) consider(position, round int) *invocation {
	var (
		w   = a.chain.Webhooks[position]
		inv = a.batch.add(w, position, round)
	)
	m, err := a.match(w)
	switch m.Reason {
	case match.Matched:
		if w.Pending != nil {
			err = &hook.CallError{Cause: hook.Pending, Err: w.Pending}
		} else {
			err = a.prepare(inv)
		}
	case match.ConditionRefusal, match.NamespaceUnknown:
		err = refuseMatch(m)
	case match.NamespaceNotLookedUp: // err says why it could not be
	case match.NotConvertible:
		err = &hook.CallError{Cause: hook.NotConvertible, Err: m.Err}
	case match.NoTimeLeft:
		err = &hook.CallError{Cause: hook.NoTimeLeft, Err: m.Err}
	case match.ConditionError:
		a.settleUncalled(inv, Outcome{Result: Skipped, Cause: hook.MatchError, Err: m.Err})
		a.batch.drop()
		return nil
	default:
		a.batch.drop()
		a.skip(w, round, m)
		return nil
	}
	if err != nil {
		a.settleUncalled(inv, a.judge(inv, codec.Response{}, err, 0))
		a.batch.drop()
		return nil
	}
	return inv
}

// settleUncalled gives a webhook that was not called its Outcome. In a mode that
// never denies, a dry run that the webhook does not support is a visible skip; a
// Shadow webhook has no part in the answer at all.
func (a *admission) settleUncalled(inv *invocation, o Outcome) {
	o.Webhook, o.Position, o.Round = inv.webhook, inv.position, inv.round
	if inv.webhook.Mode == chain.Shadow {
		a.shadowed = append(a.shadowed, o)
		return
	}
	if o.Result == Softened && o.Cause == hook.DryRun {
		o.Result, o.Softened = Skipped, false
	}
	a.settle(o)
}

// fanOut asks all webhooks of a stage at once, before following others are asked,
// and settles every answer that arrives in time. The first denial starts the
// grace, after which nobody is waited for.
func (d *Dispatcher) fanOut(a *admission, stage chain.Stage, following int) {
	waiting := 0
	for i := range a.batch.list {
		inv := &a.batch.list[i]
		if inv.webhook.Stage != stage {
			continue
		}
		inv.call.Deadline, inv.call.Timeout = a.until(inv.webhook, following, d.impatience)
		if inv.webhook.Mode == chain.Shadow {
			d.shadow(a, inv)
			continue
		}
		inv.waiting = true
		waiting++
		d.start(a.ctx, inv)
	}
	if waiting > 0 {
		d.join(a, waiting)
	}
}

// join settles answers until all are there, the grace after a denial is over, or
// the deadline has come.
func (d *Dispatcher) join(a *admission, waiting int) {
	begin := time.Now()
	timer := a.batch.alarm(time.Until(a.Deadline))
	defer timer.Stop()
	denied := false
	for waiting > 0 {
		select {
		case inv := <-a.batch.answers:
			if !inv.waiting {
				continue // of an earlier stage, and too late for it
			}
			waiting--
			if a.hear(inv).Denies() && !denied {
				denied = true
				timer.Reset(min(d.grace, time.Until(a.Deadline)))
			}
		case <-timer.C:
			denied = a.hearPresent(denied)
			a.settleUnheard(denied, time.Since(begin))
			return
		}
	}
}

// hear settles an answer.
func (a *admission) hear(inv *invocation) *Outcome {
	inv.waiting = false
	o := a.settle(a.judge(inv, inv.resp, inv.err, inv.elapsed))
	inv.endSpan(o)
	return o
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
func (a *admission) settleUnheard(denied bool, elapsed time.Duration) {
	for i := range a.batch.list {
		inv := &a.batch.list[i]
		late := inv.waiting
		inv.waiting = false
		switch {
		case !late:
		case denied:
			inv.endSpan(a.settle(Outcome{Webhook: inv.webhook, Position: inv.position, Result: Abandoned, Elapsed: elapsed}))
		default:
			err := &hook.CallError{Cause: hook.Timeout, Elapsed: elapsed, Err: errUnheard}
			inv.endSpan(a.settle(a.judge(inv, codec.Response{}, err, elapsed)))
		}
	}
}
