// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// mutate asks the matching webhooks one after the other, each with the object as
// the ones before left it, and perhaps some of them once more.
func (d *Dispatcher) mutate(a *admission) {
	var buf [16]int
	candidates := a.chain.Index.Candidates(buf[:0], a.Review)
	var again reinvocation
	d.round(a, candidates, 0, &again)
	if due := again.takeDue(); len(due) > 0 && !a.denied() {
		d.round(a, due, 1, &again)
	}
	if !a.denied() {
		a.checkPatch()
	}
}

// round asks those of the webhooks at positions that want the object as it is
// when their turn comes. The first denial ends it.
func (d *Dispatcher) round(a *admission, positions []int, round int, again *reinvocation) {
	for n, i := range positions {
		inv := a.consider(i, round)
		if inv == nil {
			if a.denied() {
				return
			}
			continue
		}
		inv.call.Deadline = a.until(inv.webhook, len(positions)-n-1, d.impatience)
		if inv.webhook.Mode == registry.Shadow {
			if round == 0 {
				d.shadow(a, inv)
			}
			continue
		}
		before := a.current().Raw
		o := d.turn(a, inv)
		again.invoked(i, inv.webhook.Reinvocation, func() bool { return !equalJSON(before, a.current().Raw) })
		if a.settle(o).Denies() {
			return
		}
	}
}

// turn asks one webhook and applies its patch.
func (d *Dispatcher) turn(a *admission, inv *invocation) Outcome {
	begin := time.Now()
	if err := d.admit(a); err != nil {
		return a.judge(inv, codec.Response{}, err, time.Since(begin))
	}
	resp, err := d.ask(a.ctx, inv)
	elapsed := time.Since(begin)
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
	return o
}

// reinvocation keeps which webhooks are due a second time: those with
// reinvocationPolicy IfNeeded that were asked before somebody after them changed
// the object. Failed calls count as asked, as in kube-apiserver.
type reinvocation struct {
	asked []int // since the last change
	due   []int
}

// invoked notes that the webhook at position was asked. changed, which is
// costly, tells whether the object is another one since then.
func (r *reinvocation) invoked(position int, reinvocable bool, changed func() bool) {
	if len(r.asked) > 0 && changed() {
		r.due = append(r.due, r.asked...)
		r.asked = r.asked[:0]
	}
	if reinvocable {
		r.asked = append(r.asked, position)
	}
}

// takeDue returns the positions that are due, ascending.
func (r *reinvocation) takeDue() []int {
	due := r.due
	*r = reinvocation{}
	return due
}
