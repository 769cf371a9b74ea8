// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// mutate asks the matching webhooks one after the other, each with the object as
// the ones before left it, and perhaps some of them once more.
func (d *Dispatcher) mutate(a *admission) {
	var buf [16]int
	candidates := a.candidates(buf[:0])
	if len(candidates) == 0 {
		return
	}
	a.batch = d.newBatch()
	defer func() {
		a.batch.close()
		if a.late != nil {
			a.late.close()
		}
	}()
	var again reinvocation
	d.round(a, candidates, 0, &again)
	if a.patches > 0 && !a.denied() {
		a.renew()
		d.round(a, candidates, 1, &again)
	}
}

// round asks those of the webhooks at positions that want the object as it is
// when their turn comes, and in the second round are due. The first denial ends
// it.
func (d *Dispatcher) round(a *admission, positions []int, round int, again *reinvocation) {
	for n, i := range positions {
		if round > 0 && !again.isDue(i) {
			if a.recheck(i, round); a.denied() {
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
		inv.call.Deadline, inv.call.Timeout = a.until(inv.webhook, again.following(positions[n+1:], round), d.impatience)
		if inv.webhook.Mode == chain.Shadow { // never due
			d.shadow(a, inv)
			continue
		}
		a.subject.Forget()
		before := a.generation
		o := d.turn(a, inv)
		again.invoked(i, inv.webhook.Reinvocation, a.generation != before)
		if a.settle(o).Denies() {
			return
		}
	}
}

// turn asks one webhook and applies its patch.
func (d *Dispatcher) turn(a *admission, inv *invocation) Outcome {
	d.start(a.ctx, inv)
	resp, elapsed, err := d.answer(a, inv)
	operations := 0
	if err == nil && resp.Allowed && resp.Patch != nil {
		operations, err = a.apply(inv.webhook, resp.Patch)
	}
	if err != nil {
		resp = codec.Response{
			Warnings:           resp.Warnings,
			Annotations:        resp.Annotations,
			DroppedAnnotations: resp.DroppedAnnotations,
		}
	}
	o := a.judge(inv, resp, err, elapsed)
	o.Operations = operations
	inv.endSpan(&o)
	return o
}

// answer waits for the answer of inv until the deadline. A call that does not end by
// then, which is the last one, keeps the batch to itself: it still writes to its
// invocation there.
func (d *Dispatcher) answer(a *admission, inv *invocation) (codec.Response, time.Duration, error) {
	timer := a.batch.alarm(time.Until(a.Deadline))
	defer timer.Stop()
	select {
	case <-a.batch.answers:
		return inv.resp, inv.elapsed, inv.err
	case <-timer.C:
	}
	select {
	case <-a.batch.answers: // it is there: the process stood still
		return inv.resp, inv.elapsed, inv.err
	default:
	}
	a.late, a.batch = a.batch, d.newBatch()
	elapsed := time.Since(inv.begin)
	return codec.Response{}, elapsed, &hook.CallError{Cause: hook.Timeout, Elapsed: elapsed, Err: errUnheard}
}

// recheck matches a webhook against the mutated object although it is not due: as
// in kube-apiserver, a match that can no longer be decided denies.
func (a *admission) recheck(position, round int) {
	w := a.chain.Webhooks[position]
	if w.Mode != chain.Enforce {
		return
	}
	m, _ := a.match(w) // without a slot nobody was called, and there is no second round
	if m.Reason == match.ConditionRefusal || m.Reason == match.NamespaceUnknown {
		inv := &invocation{webhook: w, position: position, round: round}
		a.settleUncalled(inv, a.judge(inv, codec.Response{}, refuseMatch(m), 0))
	}
}

// reinvocation keeps which webhooks are due a second time: those with
// reinvocationPolicy IfNeeded that were asked before somebody changed the object,
// be that one after them, or one before them in the second round. Failed calls
// count as asked, as in kube-apiserver.
type reinvocation struct {
	asked []int // since the last change
	due   []int
}

// invoked notes that the webhook at position was asked, and whether the object is
// another one since then.
func (r *reinvocation) invoked(position int, reinvocable, changed bool) {
	if len(r.asked) > 0 && changed {
		r.due = append(r.due, r.asked...)
		r.asked = r.asked[:0]
	}
	if reinvocable {
		r.asked = append(r.asked, position)
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
