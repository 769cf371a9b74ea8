// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

const noHedge = `  hedge: "Off"` + "\n"

// besideNoHedging is r with a control: the same load and the same fault, at the same
// time, around a dispatcher that does not hedge. So whatever else the machine has to
// do hits both.
func besideNoHedging(r row, judge func(t *findings, with, without *record)) row {
	off, begin := r, r.begin
	off.binding += noHedge
	var without *record
	var done chan struct{}
	r.begin = func(w *world) {
		without, done = nil, make(chan struct{})
		go func() {
			defer close(done)
			_, without = off.run(w.t)
		}()
		w.t.Cleanup(func() { <-done })
		if begin != nil {
			begin(w)
		}
	}
	r.check = func(t *findings, w *world, with *record) {
		<-done
		if without == nil {
			t.Fatal("the control has not run")
		}
		if n := without.extra(); n > 0 {
			t.Errorf("the control has hedged: %d extra attempts", n)
		}
		someHedges(t, w, with)
		judge(t, with, without)
	}
	return r
}

// someHedges: what a row says about hedging it says only if there was some.
func someHedges(t *findings, _ *world, rec *record) {
	hedges, seen := 0, map[string]bool{}
	for _, a := range rec.attempts {
		if seen[a.UID+a.Webhook] && a.Arrived >= rec.broken && a.Arrived < rec.repaired {
			hedges++
		}
		seen[a.UID+a.Webhook] = true
	}
	if hedges == 0 {
		t.Error("no call was hedged during the fault")
	}
}

// Row F8.
const (
	slowBy    = 100 * time.Millisecond
	slowShare = 0.01
	better    = 3 // times, at p99.9
)

// cutsTheTail: what is slow without hedging is not with it. How late 1 call in 1,000
// is depends on the machine as much, in smoke size: there it is counted how many calls
// had the slow answer and did not wait for it, which it does not change.
func cutsTheTail(t *findings, with, without *record) {
	spared, all := with.spared()
	if all == 0 {
		t.Fatal("no call had a slow answer")
	}
	if spared*better < all*(better-1) {
		t.Errorf("%d of %d calls waited for the slow answer", all-spared, all)
	}
	took, control := with.waits(), without.waits()
	q := 1 - float64(all)/2/float64(len(control)) // in the midst of those that are slow
	if full {
		q = 0.999
	}
	on, off, usual := quantile(took, q), quantile(control, q), quantile(control, 1-3*slowShare)
	progress("F8   %d of %d slow answers not waited for; p%.1f %v, without hedging %v", spared, all, 100*q, rounded(on), rounded(off))
	if busy := usual > slowBy/better; on*better > off && (full || !busy) {
		t.Errorf("p%.1f is %v, without hedging %v", 100*q, on, off)
	}
}

// spared counts the affected calls of whose attempts one was answered late, and
// those of them that were answered before.
func (rec *record) spared() (spared, all int) {
	late := map[string]time.Duration{}
	for _, a := range rec.attempts {
		if a.Answered-a.Arrived >= slowBy && (late[a.UID] == 0 || a.Answered < late[a.UID]) {
			late[a.UID] = a.Answered
		}
	}
	for _, c := range rec.affected() {
		if at, ok := late[c.UID]; ok {
			all++
			if c.Done < at {
				spared++
			}
		}
	}
	return spared, all
}

// Row F10: the load stays, and the webhook becomes slower.
const (
	capacityLoad = 90                           // calls a second, which ask the webhook
	capacityRate = capacityLoad / 3. * 10. / 6. // of each of three clusters; four of ten calls are exempt
	places       = 2                            // at each of two Endpoints
)

var (
	nearCapacity = time.Duration(sized(6, 90)) * time.Second
	percents     = []int{70, 90, 105}
)

// overfull: a webhook that can do what it is asked answers every call, and so it does
// when it is asked for a twentieth more, until the queue is as long as its timeout. With
// as many hedges as there may be it grows by a tenth of a second each second, or twice
// that where more come than usual.
var overfull = []excuse{{causes: []history.Cause{history.Timeout, history.BreakerOpen}, from: nearCapacity*2/3 + 5*time.Second}}

// fuller makes the webhook slower, step by step.
func fuller(w *world) {
	w.every(nearCapacity/time.Duration(len(percents)), len(percents), func(i int) { loadedTo(percents[i])(w) })
}

// pressed is a webhook for which a second is too late, so that a queue costs answers.
func pressed() []history.Webhook {
	hooks := willing()
	hooks[0].Timeout = time.Second
	return hooks
}

// loadedTo makes a webhook for which the load is so many percent of what it can do. It
// works on what nobody waits for any more.
func loadedTo(percent int) func(*world) {
	takes := time.Duration(percent) * time.Second * 2 * places / 100 / capacityLoad
	return func(w *world) {
		for _, e := range w.hurt {
			e.Behave(hurtFail, script.Behaviour{Delay: takes, Capacity: make(chan struct{}, places)})
		}
	}
}

// sameGoodput: hedging costs no answers, however busy the webhook is.
func sameGoodput(t *findings, with, without *record) {
	bound := 0.95 // in smoke size there are some 180 calls at each
	if full {
		bound = 0.98
	}
	for i, percent := range percents {
		on, off := with.goodput(i), without.goodput(i)
		progress("F10  at %3d %%: %.1f %% answered, without hedging %.1f %%", percent, 100*on, 100*off)
		if on < bound*off {
			t.Errorf("at %d %% of its capacity %.1f %% of the calls are answered, without hedging %.1f %%", percent, 100*on, 100*off)
		}
	}
}

// goodput is the share of the calls that are allowed, in one of the parts of the fault.
func (rec *record) goodput(part int) float64 {
	span := (rec.repaired - rec.broken) / time.Duration(len(percents))
	begin := rec.broken + time.Duration(part)*span
	good, all := 0, 0
	for _, c := range rec.calls {
		if c.Exempt || c.Sent < begin || c.Sent >= begin+span {
			continue
		}
		all++
		if c.Allowed {
			good++
		}
	}
	return float64(good) / float64(max(all, 1))
}
