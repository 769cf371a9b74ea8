// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// validate asks all matching webhooks at once; those of the Transactional stage
// after all others, and only if everything else allowed. What is denied before
// any call is sent to nobody.
func (d *Dispatcher) validate(a *admission) {
	wanted := a.wanted()
	if a.denied() {
		return
	}
	last := ofStage(wanted, registry.StageTransactional)
	if d.fanOut(a, ofStage(wanted, registry.StageValidating), len(last)); a.denied() {
		return
	}
	d.fanOut(a, last, 0)
}

// wanted returns the invocations of all webhooks that want the review and can
// be called; the others that count have their Outcome already.
func (a *admission) wanted() []*invocation {
	var buf [16]int
	candidates := a.chain.Index.Candidates(buf[:0], a.Review)
	wanted := make([]*invocation, 0, len(candidates))
	for _, i := range candidates {
		if inv := a.consider(i, 0); inv != nil {
			wanted = append(wanted, inv)
		}
	}
	return wanted
}

// consider matches the webhook at position against the object as it is now and
// returns its invocation, or nil where it is not to be called. A webhook that
// should have been called but cannot be gets its Outcome.
func (a *admission) consider(position, round int) *invocation {
	w := a.chain.Webhooks[position]
	m := w.Matcher.Match(&a.subject)
	var (
		inv = &invocation{webhook: w, position: position, round: round}
		err error
	)
	switch m.Reason {
	case match.Matched:
		err = a.prepare(inv)
	case match.ConditionRefusal, match.NamespaceUnknown:
		err = refuseMatch(m)
	case match.NotConvertible:
		err = &webhook.CallError{Cause: webhook.NotConvertible, Err: m.Err}
	case match.NoTimeLeft:
		err = &webhook.CallError{Cause: webhook.NoTimeLeft, Err: m.Err}
	case match.ConditionError:
		a.settleUncalled(inv, Outcome{Result: Skipped, Cause: webhook.MatchError, Err: m.Err})
		return nil
	default:
		return nil
	}
	if err != nil {
		a.settleUncalled(inv, a.judge(inv, codec.Response{}, err, 0))
		return nil
	}
	return inv
}

// settleUncalled gives a webhook that was not called its Outcome. In a mode that
// never denies, a dry run that the webhook does not support is a visible skip; a
// Shadow webhook has no part in the answer at all.
func (a *admission) settleUncalled(inv *invocation, o Outcome) {
	if inv.webhook.Mode == registry.Shadow {
		return
	}
	if o.Softened && o.Cause == webhook.DryRun {
		o.Result, o.Softened = Skipped, false
	}
	o.Webhook, o.Position, o.Round = inv.webhook, inv.position, inv.round
	a.settle(o)
}

func ofStage(all []*invocation, stage registry.Stage) []*invocation {
	var some []*invocation
	for _, inv := range all {
		if inv.webhook.Stage == stage {
			some = append(some, inv)
		}
	}
	return some
}

// fanOut asks all of wanted at once, before following others are asked, and
// settles every answer that arrives in time. The first denial starts the grace,
// after which nobody is waited for.
func (d *Dispatcher) fanOut(a *admission, wanted []*invocation, following int) {
	answers := make(chan answer, len(wanted))
	waiting := make([]*invocation, 0, len(wanted))
	for _, inv := range wanted {
		inv.call.Deadline = a.until(inv.webhook, following, d.impatience)
		if inv.webhook.Mode == registry.Shadow {
			d.shadow(a, inv)
			continue
		}
		if err := d.admit(a); err != nil {
			a.settle(a.judge(inv, codec.Response{}, err, 0))
			continue
		}
		d.start(a.ctx, inv, answers)
		waiting = append(waiting, inv)
	}
	d.join(a, waiting, answers)
}

// join settles answers until all are there, the grace after a denial is over, or
// the deadline has come.
func (d *Dispatcher) join(a *admission, waiting []*invocation, answers <-chan answer) {
	begin := time.Now()
	timer := time.NewTimer(time.Until(a.Deadline))
	defer timer.Stop()
	denied := false
	for left := len(waiting); left > 0; {
		select {
		case got := <-answers:
			left--
			got.inv.settled = true
			o := a.settle(a.judge(got.inv, got.resp, got.err, got.elapsed))
			if o.Denies() && !denied {
				denied = true
				timer.Reset(min(d.grace, time.Until(a.Deadline)))
			}
		case <-timer.C:
			a.settleUnheard(waiting, denied, time.Since(begin))
			return
		}
	}
}

// settleUnheard gives those that were not heard their Outcome: abandoned after
// somebody's denial, timed out otherwise.
func (a *admission) settleUnheard(waiting []*invocation, denied bool, elapsed time.Duration) {
	for _, inv := range waiting {
		switch {
		case inv.settled:
		case denied:
			a.settle(Outcome{Webhook: inv.webhook, Position: inv.position, Result: Abandoned, Elapsed: elapsed})
		default:
			err := &webhook.CallError{Cause: webhook.Timeout, Elapsed: elapsed, Err: errors.New("no answer before the caller's deadline")}
			a.settle(a.judge(inv, codec.Response{}, err, elapsed))
		}
	}
}
