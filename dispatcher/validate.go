// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"slices"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// validate asks all matching Hooks of a stage at once, and those of the next one only if
// everything before allowed. What is denied before any call is sent to nobody.
func (d *Dispatcher) validate(a *admission) {
	var buf [16]int
	candidates := a.candidates(buf[:0])
	if len(candidates) == 0 {
		return
	}
	a.batch = d.newBatch()
	defer a.batch.close()
	var considered [len(chain.Stages)]int
	for _, i := range candidates {
		if inv := a.consider(i, 0); inv != nil {
			considered[inv.webhook.Stage]++
		}
	}
	a.subject.Forget()
	a.batch.makeRoom()
	a.outcomes = slices.Grow(a.outcomes, len(a.batch.list))
	following := len(a.batch.list)
	for _, stage := range chain.Stages {
		following -= considered[stage]
		if considered[stage] > 0 && !a.denied() {
			d.fanOut(a, stage, following)
		}
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
			err = a.prepare(w)
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
	for _, inv := range a.batch.list {
		if inv.webhook.Stage == stage {
			d.ask(a, inv, following)
		}
	}
	d.join(a)
}
