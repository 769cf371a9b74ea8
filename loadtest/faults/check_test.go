// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// noLeak: descriptors come back.
func noLeak(t *findings, w *world, rec *record) {
	const more = 40 // connections that are idle
	for deadline := time.Now().Add(patience); ; pass(100 * time.Millisecond) {
		n, err := descriptors(w.servers[0])
		if err != nil {
			t.Log(err)
			return
		}
		if n <= rec.descriptors+more {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are open, %d were before the first call", n, rec.descriptors)
		}
	}
}

func descriptors(d *dispatcher) (int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.ID()))
	return len(list), err
}

// nothingArrived: not a byte of a review reaches who cannot prove who it is.
func nothingArrived(t *findings, w *world, rec *record) {
	const underWay = 50 * time.Millisecond // as the fault was set
	arrived := 0
	for _, e := range w.hurt {
		for _, a := range e.Attempts() {
			if a.Arrived > rec.broken+underWay {
				arrived++
			}
		}
	}
	if arrived > 0 {
		t.Errorf("%d reviews have arrived", arrived)
	}
}

func noStrays(t *findings, w *world, _ *record) {
	for _, s := range w.scripts() {
		if n := s.Strays(); n > 0 {
			t.Errorf("%d requests have followed a redirect", n)
		}
	}
}

// everyStatus: each webhook has answered with all of them.
func everyStatus(t *findings, _ *world, rec *record) {
	answers := map[string]int{}
	for _, a := range rec.attempts {
		if a.Answered > rec.broken {
			answers[a.Webhook]++
		}
	}
	for _, hook := range []string{hurtFail, hurtIgnore} {
		if answers[hook] < len(statuses) {
			t.Errorf("%s has answered only %d times, there are %d statuses", hook, answers[hook], len(statuses))
		}
	}
}

// onlyEastIsShed: who asks for more than its share is shed, and nobody else. Others
// wait as long as ever.
func onlyEastIsShed(t *findings, _ *world, rec *record) {
	other := func(c *history.Call) bool { return c.Cluster != "east" && !c.Exempt }
	within := func(from, until time.Duration) span {
		return span{times(rec.calls, from, until, other), times(rec.direct, from, until, func(*history.Call) bool { return true })}
	}
	before, beside := within(rec.started, rec.broken), within(rec.broken, rec.repaired)
	for _, said := range beside.exceeds("beside a cluster that asks for too much", []limit{{0.9, 50 * time.Millisecond, 0.5}, {0.99, 100 * time.Millisecond, 0.5}}, 0, before) {
		t.Error(said)
	}
	shed := map[string]int{}
	for _, c := range rec.calls {
		if c.Code == 429 {
			shed[c.Cluster]++
		}
	}
	if shed["east"] == 0 || len(shed) > 1 {
		t.Errorf("shed: %v", shed)
	}
}

// recovered is how long after the descriptors are gone everybody is served again.
const recovered = 5 * time.Second

// servesInTheEnd: from then on calls are answered, and soon, although strangers still
// take every descriptor that they get.
func servesInTheEnd(t *findings, _ *world, rec *record) {
	const soon = 2 * time.Second
	for _, c := range rec.calls {
		if took := c.Done - c.Sent; c.Sent > rec.broken+recovered && (c.Err != "" || took > soon+c.Stall) {
			t.Errorf("%v after the fault and later: answered after %v, %s", recovered, took, c.Err)
			return
		}
	}
}

// lastIsNotAsked: for whom there is no time left, is not asked in vain.
func lastIsNotAsked(t *findings, _ *world, rec *record) {
	asked := map[string]bool{}
	for _, a := range rec.attempts {
		asked[a.UID+a.Webhook] = true
	}
	without := 0
	for _, c := range rec.affected() {
		if !strings.Contains(c.Message, ": NoTimeLeft after ") {
			continue
		}
		without++
		if c.Code != 504 || asked[c.UID+hurtFail] {
			t.Errorf("asked although no time was left, or not 504:\n%s", rec.story(c.UID))
		}
	}
	if without == 0 {
		t.Error("there was always time left")
	}
}

// logIsWhole: what was dropped while nobody read it is counted, and each line is a
// record.
func logIsWhole(t *findings, w *world, rec *record) {
	l := (&row{}).latencies(rec)
	for _, said := range l.under.exceeds("while nobody takes telemetry", []limit{{0.5, 5 * time.Millisecond, 0.1}, {0.9, 20 * time.Millisecond, 0.1}, {0.99, 50 * time.Millisecond, 0.1}}, 0, l.control) {
		t.Error(said)
	}
	dropped := []string{"spans"}
	if full { // as many lines as may wait are not logged in a few seconds
		dropped = append(dropped, "logs")
	}
	for _, signal := range dropped {
		n := w.metric(w.servers[0], "dispatcher_telemetry_dropped_total", fmt.Sprintf("signal=%q", signal))
		progress("F31  %.0f %s were dropped", n, signal)
		if n == 0 {
			t.Errorf("no %s were dropped, or nobody has counted them", signal)
		}
	}
	for line := range strings.Lines(w.servers[0].Log()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a record: %q", line)
			return
		}
	}
}
