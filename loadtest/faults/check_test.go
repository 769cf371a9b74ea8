// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// noLeak: descriptors come back.
func noLeak(t *testing.T, w *world, rec *record) {
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
func nothingArrived(t *testing.T, w *world, rec *record) {
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

func noStrays(t *testing.T, w *world, _ *record) {
	for _, s := range w.scripts() {
		if n := s.Strays(); n > 0 {
			t.Errorf("%d requests have followed a redirect", n)
		}
	}
}

// recovered: in the end nearly all is true.
func recovered(t *testing.T, _ *world, rec *record) {
	failed, all := 0, 0
	for _, c := range rec.calls {
		if c.Sent < rec.repaired+3*time.Second {
			continue
		}
		all++
		if c.Code >= 500 || len(c.Warnings) > 0 {
			failed++
		}
	}
	if all == 0 || failed*100 > all {
		t.Errorf("%d of %d calls have failed after the recovery", failed, all)
	}
}

// fewWait: while probes hang, no more of a cluster's calls wait than may. The others
// are answered at once.
func fewWait(t *testing.T, _ *world, rec *record) {
	const most = 16 + 4 // and those that probe, of two webhooks
	begin, late := rec.broken+2*time.Second, map[string][]history.Call{}
	for _, c := range rec.affected() {
		if c.Sent > begin && c.Done-c.Sent > 500*time.Millisecond {
			late[c.Cluster] = append(late[c.Cluster], c)
		}
	}
	for cluster, calls := range late {
		for _, c := range calls {
			atOnce := 0
			for _, other := range calls {
				if other.Sent <= c.Sent && c.Sent < other.Done {
					atOnce++
				}
			}
			if atOnce > most {
				t.Errorf("%d calls of %s wait at a time", atOnce, cluster)
				return
			}
		}
	}
}

// everyStatus: each webhook has answered with all of them.
func everyStatus(t *testing.T, _ *world, rec *record) {
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
func onlyEastIsShed(t *testing.T, _ *world, rec *record) {
	other := func(c *history.Call) bool { return c.Cluster != "east" && !c.Exempt }
	times := []limit{{0.9, 50 * time.Millisecond, 0.5}, {0.99, 100 * time.Millisecond, 0.5}}
	exceed(t, "beside a cluster that asks for too much", times, 0, newSpan(rec.calls, rec.started, rec.broken, other), newSpan(rec.calls, rec.broken, rec.repaired, other))
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

func servesInTheEnd(t *testing.T, _ *world, rec *record) {
	for _, c := range rec.calls {
		if c.Sent > rec.repaired+4*time.Second && c.Err != "" {
			t.Errorf("5 s after the fault: %s", c.Err)
			return
		}
	}
}

// noBreakerOpened: what this process did not hear while it stood still is
// nobody's fault.
func noBreakerOpened(t *testing.T, _ *world, rec *record) {
	for _, c := range rec.calls {
		if strings.Contains(c.Message+strings.Join(c.Warnings, ""), "BreakerOpen") {
			t.Errorf("a breaker opened: %+v", c)
			return
		}
	}
}

// twinsAreHeard: where both twins were asked before the first error was there, the
// truth of the second counts.
func twinsAreHeard(t *testing.T, _ *world, rec *record) {
	asked := map[string][]history.Attempt{}
	for _, a := range rec.attempts {
		asked[a.UID+a.Webhook] = append(asked[a.UID+a.Webhook], a)
	}
	twins := 0
	for _, c := range rec.affected() {
		for _, hook := range []string{hurtFail, hurtIgnore} {
			both := asked[c.UID+hook]
			if len(both) != 2 || both[0].Endpoint == both[1].Endpoint {
				continue
			}
			twins++
			if said := c.Message + strings.Join(c.Warnings, ""); strings.Contains(said, fmt.Sprintf("failed calling webhook %q", hook)) {
				t.Errorf("an error has beaten a verdict:\n%s", rec.story(c.UID))
			}
		}
	}
	if twins < 5 {
		t.Errorf("only %d calls had a twin", twins)
	}
	progress("F21  %d calls had twins", twins)
}

// lastIsNotAsked: for whom there is no time left, is not asked in vain.
func lastIsNotAsked(t *testing.T, _ *world, rec *record) {
	asked := map[string]bool{}
	for _, a := range rec.attempts {
		asked[a.UID+a.Webhook] = true
	}
	without := 0
	for _, c := range rec.affected() {
		if !strings.Contains(c.Message, "(NoTimeLeft") {
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
func logIsWhole(t *testing.T, w *world, rec *record) {
	times := []limit{{0.5, 5 * time.Millisecond, 0.1}, {0.9, 20 * time.Millisecond, 0.1}, {0.99, 50 * time.Millisecond, 0.1}}
	l := (&row{}).latencies(rec)
	exceed(t, "while nobody takes telemetry", times, 0, l.control, l.under)
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
