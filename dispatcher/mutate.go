// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"slices"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// mutate asks the matching webhooks one after the other, each with the object as
// the ones before left it, and perhaps some of them once more.
func (a *admission) mutate() {
	var buf [16]int
	candidates := a.candidates(buf[:0])
	if len(candidates) == 0 {
		return
	}
	a.batch = a.dispatcher.newBatch()
	defer a.batch.close()
	var again reinvocation
	a.round(candidates, 0, &again)
	if a.patches > 0 && !a.denied() {
		a.renew()
		a.round(candidates, 1, &again)
	}
}

// round asks those of the webhooks at positions that want the object as it is
// when their turn comes, and in the second round are due. The first denial ends
// it.
func (a *admission) round(positions []int, round int, again *reinvocation) {
	for n, i := range positions {
		if round > 0 && !again.isDue(i) && !a.recheck(i, round) {
			if a.denied() {
				return
			}
			continue
		}
		inv := a.consider(i, round)
		if inv == nil {
			if a.denied() {
				return
			}
			continue
		}
		a.subject.Variables().Forget()
		before := a.subject.Generation
		a.ask(inv, again.following(positions[n+1:], round))
		if inv.webhook.Mode == chain.Shadow { // never due
			continue
		}
		a.join()
		again.invoked(i, inv.webhook, a.subject.Generation != before)
		if o := a.outcomes[len(a.outcomes)-1]; o.Denies() {
			return
		}
	}
}

// recheck matches a webhook against the mutated object although it is not due: as
// in kube-apiserver, a match that can no longer be decided denies. It reports whether the
// Hook is to answer for that.
func (a *admission) recheck(position, round int) (ask bool) {
	w := a.chain.Webhooks[position]
	if w.Mode != chain.Enforce {
		return false
	}
	m, _ := a.match(w) // without a slot nobody was called, and there is no second round
	switch m.Reason {
	case match.ConditionRefusal, match.NamespaceUnknown:
		inv := &invocation{inquiry: inquiry{webhook: w, position: position, round: round}}
		a.settleUncalled(inv, a.judge(inv, codec.Response{}, refuseMatch(m), 0))
	case match.Matched:
		return m.Condition != ""
	}
	return false
}

// reinvocation keeps which webhooks are due a second time: those with
// reinvocationPolicy IfNeeded that were asked before somebody changed the object,
// be that one after them, or one before them in the second round. Failed calls
// count as asked, as in kube-apiserver. A plugin is due only where somebody else than a
// plugin has changed the object: kube-apiserver asks its own again for webhooks and
// policies, and never for one another.
type reinvocation struct {
	asked []turn // since the last change
	due   []int
}

// turn is a webhook, or what else is asked, at its position.
type turn struct {
	position   int
	compiledIn bool
}

// invoked notes that w was asked at its position, and whether the object is another one
// since then.
func (r *reinvocation) invoked(position int, w *chain.Entry, changed bool) {
	if changed {
		r.asked = slices.DeleteFunc(r.asked, func(before turn) bool {
			if before.compiledIn && w.CompiledIn {
				return false
			}
			r.due = append(r.due, before.position)
			return true
		})
	}
	if w.Reinvocation {
		r.asked = append(r.asked, turn{position, w.CompiledIn})
	}
}

// isDue reports whether the webhook at position is to be asked once more.
func (r *reinvocation) isDue(position int) bool { return slices.Contains(r.due, position) }

// following counts the webhooks of rest that may still be asked in this round.
func (r *reinvocation) following(rest []int, round int) int {
	if round == 0 {
		return len(rest)
	}
	n := 0
	for _, position := range rest {
		if r.isDue(position) {
			n++
		}
	}
	return n
}
