// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"fmt"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// candidates appends to dst the positions of the webhooks that stand on the path
// that was called and may want the review.
func (a *admission) candidates(dst []int) []int {
	return a.Path.Among(a.chain.Index.Candidates(dst, a.Review))
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
	case match.NamespaceNotLookedUp, match.AuthorizerNotAsked: // err says why it could not be
		if err == nil { // a Shadow webhook's, which is matched later
			inv.undecided = true
			return inv
		}
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

// match decides whether w wants the object as it is now. Matching does no I/O: where it
// needs what the cluster must be asked for, the admission waits for that in its slot, within
// its deadline, and matches again. The error says why it could not: without a slot the
// webhook's call has failed, as if it had matched. No admission waits for the sake of a
// Shadow webhook: that is undecided, without an error.
func (a *admission) match(w *chain.Entry) (match.Decision, error) {
	for {
		m := w.Matcher.Match(&a.subject)
		if m.Reason != match.NamespaceNotLookedUp && m.Reason != match.AuthorizerNotAsked {
			return m, nil
		}
		if !a.shadows { // nobody waits for those, and they have no slot
			if w.Mode == chain.Shadow {
				return m, nil
			}
			if err := a.admit(); err != nil {
				return m, err
			}
		}
		var err error
		if m.Reason == match.NamespaceNotLookedUp {
			err = a.lookUpNamespace(m)
		} else {
			err = a.subject.Answer(a.subject.Variables(), m.Unanswered, a.Deadline, !a.shadows)
		}
		if err != nil {
			return m, err
		}
	}
}

// lookUpNamespace looks up what m needs, after which it is known, or known not to be.
func (a *admission) lookUpNamespace(m match.Decision) error {
	source, ok := a.Cluster.Namespaces.(match.NamespaceLookup)
	if !ok {
		return refuseMatch(m)
	}
	done, err := a.subject.LookUp(!a.shadows)
	if err != nil {
		return err
	}
	defer done()
	labels, err := source.LookUpNamespace(string(a.Review.Namespace), a.Deadline)
	if errors.Is(err, match.ErrNotLookedUp) { // after all
		err = errNotLookedUp
	}
	a.subject.SetNamespaceLabels(labels, err)
	return nil
}

// errNotLookedUp is the error of a source that looks up nothing.
var errNotLookedUp = errors.New("the cluster has not answered")

// refuseMatch is the Refusal of a webhook whose match cannot be decided. An
// unknown namespace is a 404, as in kube-apiserver.
func refuseMatch(m match.Decision) *hook.Refusal {
	code := hook.MatchError.Code()
	if m.Reason == match.NamespaceUnknown {
		code = 404
	}
	return &hook.Refusal{Cause: hook.MatchError, Code: code, Err: m.Err}
}

// prepare says why the Hook of w cannot be asked at all, and takes a slot for the
// admission.
func (a *admission) prepare(w *chain.Entry) error {
	if a.Review.DryRun && !w.SideEffects.SupportsDryRun() {
		return refuseDryRun(w)
	}
	if time.Until(a.Deadline) < leastTime {
		return &hook.CallError{Cause: hook.NoTimeLeft, Err: errors.New("no time left for the call before the caller's deadline")}
	}
	if w.Mode == chain.Shadow { // those never wait, nor hold anybody up
		return nil
	}
	return a.admit()
}

// leastTime is what a call needs to have any prospect: with less left, the
// webhook is not asked in vain (F23).
const leastTime = 5 * time.Millisecond

func refuseDryRun(w *chain.Entry) *hook.Refusal {
	return &hook.Refusal{
		Cause: hook.DryRun,
		Code:  hook.DryRun.Code(),
		Err:   fmt.Errorf("admission %s does not support dry run", w.Called()),
	}
}

// settleUncalled gives a webhook that was not called its Outcome. One in mode Shadow has
// no part in the answer.
func (a *admission) settleUncalled(inv *invocation, o Outcome) {
	o.Webhook, o.Position, o.Round = inv.webhook, inv.position, inv.round
	if inv.webhook.Mode == chain.Shadow {
		a.shadowed = append(a.shadowed, o)
		return
	}
	a.settle(o)
}

// Skip is a webhook whose rules select the resource and that was not asked all
// the same. It borrows nothing from the Review.
type Skip struct {
	Webhook   *chain.Entry
	Round     int // 1 for a reinvocation
	Reason    match.Reason
	Condition string // the matchCondition that decided, if one did
}

// skip keeps why the webhook was not asked, if somebody wants to know.
func (a *admission) skip(w *chain.Entry, round int, m match.Decision) {
	if a.dispatcher.keepSkips && !a.shadows {
		a.skips = append(a.skips, Skip{Webhook: w, Round: round, Reason: m.Reason, Condition: m.Condition})
	}
}
