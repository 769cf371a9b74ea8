// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// inBubble hides the deadline of a test, which is of another clock.
type inBubble struct{ *testing.T }

func TestRandomHistoriesAgainstTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			h := newHistory(t)
			t.Repeat(map[string]func(*rapid.T){
				"allow":  func(t *rapid.T) { h.allow(t, false) },
				"force":  func(t *rapid.T) { h.allow(t, true) },
				"done":   h.done,
				"reach":  h.reach,
				"burst":  h.burst,
				"one":    h.oneResource,
				"wait":   h.wait,
				"probed": h.waitUntil,
				"":       h.compare,
			})
			h.recover(t)
		})
	})
}

// history drives a Breaker and its model alike.
type history struct {
	breaker *breaker.Breaker
	model   *model
	open    []attemptUnderWay
	told    map[[2]string]breaker.State // what the changes have come to, by cluster and resource
}

type attemptUnderWay struct {
	ticket *breaker.Ticket
	model  *modelTicket
	start  time.Time
	probe  bool
}

func newHistory(t *rapid.T) *history {
	s := breaker.Settings{
		Window:          10 * time.Second,
		MinRequests:     rapid.IntRange(1, 10).Draw(t, "minRequests"),
		FailureRatio:    rapid.SampledFrom([]float64{0.2, 0.5, 1}).Draw(t, "ratio"),
		ConnectFailures: rapid.IntRange(1, 4).Draw(t, "connectFailures"),
		OpenTime:        5 * time.Second,
		MaxOpenTime:     30 * time.Second,
		ProbeTimeout:    2 * time.Second,
		ForcedInterval:  100 * time.Millisecond,
		RampWidth:       rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "ramp"),
		Rand:            middle,
	}
	h := &history{model: newModel(s, time.Now()), told: map[[2]string]breaker.State{}}
	s.Changed = func(c breaker.Change) { h.follow(t, c) }
	h.breaker = breaker.New(s)
	return h
}

// follow notes a change. What a wider circuit replaces ends with it.
func (h *history) follow(t *rapid.T, c breaker.Change) {
	h.breaker.State() // the lock is free
	at := [2]string{c.Cluster, c.Resource}
	if h.told[at] != c.From || c.From == c.To || c.Why == "" || c.At.After(time.Now()) {
		t.Fatalf("it was %v, and now %+v", h.told[at], c)
	}
	if c.Resource == "" && c.From == breaker.Closed {
		maps.DeleteFunc(h.told, func(at [2]string, _ breaker.State) bool {
			return at[0] != "" && (c.Cluster == "" || c.Cluster == at[0])
		})
	}
	if h.told[at] = c.To; c.To == breaker.Closed {
		delete(h.told, at)
	}
}

// compareTold compares what the changes have come to with what there is.
func (h *history) compareTold(t *rapid.T) {
	status, want := h.breaker.Status(), map[[2]string]breaker.State{}
	if status.State != breaker.Closed {
		want[[2]string{}] = status.State
	}
	for _, c := range status.Circuits {
		want[[2]string{c.Cluster, c.Resource}] = c.State
	}
	if diff := cmp.Diff(want, h.told); diff != "" {
		t.Fatalf("the changes do not lead to the status (-status +changes):\n%s", diff)
	}
}

func cluster() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{east, west, north})
}

func resource() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{pods, secrets, deploys})
}

func result() *rapid.Generator[breaker.Result] {
	return rapid.SampledFrom([]breaker.Result{breaker.Success, breaker.Failure, breaker.ConnectFailure, breaker.Excluded})
}

func (h *history) allow(t *rapid.T, force bool) {
	h.ask(t, cluster().Draw(t, "cluster"), resource().Draw(t, "resource"), force)
}

// ask compares the two answers. The state says beforehand what the answer is.
func (h *history) ask(t *rapid.T, cluster, resource string, force bool) bool {
	state := h.breaker.StateOf(cluster, resource)
	ask := h.breaker.Allow
	if force {
		ask = h.breaker.AllowForced
	}
	ticket, ok := ask(cluster, resource)
	mt, want := h.model.allow(cluster, resource, time.Now(), force)
	if ok != want {
		t.Fatalf("%s %s (forced: %v) while %v: allowed %v, the model says %v", cluster, resource, force, state, ok, want)
	}
	if state == breaker.Closed && !ok || state == breaker.Open && ok && !force {
		t.Fatalf("%s %s: %v, and allowed: %v", cluster, resource, state, ok)
	}
	if ok {
		probe := h.breaker.State() == breaker.HalfOpen && !mt.forcedAtAll
		if probe {
			h.noOtherProbe(t)
		}
		h.open = append(h.open, attemptUnderWay{ticket: &ticket, model: mt, start: time.Now(), probe: probe})
	}
	return ok
}

// noOtherProbe checks that no probe is under way within its time.
func (h *history) noOtherProbe(t *rapid.T) {
	for _, a := range h.open {
		if age := time.Since(a.start); a.probe && age < h.model.s.ProbeTimeout {
			t.Fatalf("a second probe while one is under way for %v", age)
		}
	}
}

func (h *history) done(t *rapid.T) {
	if len(h.open) == 0 {
		t.Skip("none under way")
	}
	i := rapid.IntRange(0, len(h.open)-1).Draw(t, "attempt")
	h.end(t, i, result().Draw(t, "result"))
}

// reach notes that an attempt has a connection.
func (h *history) reach(t *rapid.T) {
	if len(h.open) == 0 {
		t.Skip("none under way")
	}
	i := rapid.IntRange(0, len(h.open)-1).Draw(t, "attempt")
	h.open[i].probe = false
	h.open[i].ticket.Reached()
	h.model.reached(h.open[i].model, time.Now())
}

func (h *history) end(t *rapid.T, i int, r breaker.Result) {
	a := h.open[i]
	h.open = append(h.open[:i:i], h.open[i+1:]...)
	before := h.breaker.Status()
	a.ticket.Done(r)
	h.model.done(a.model, r, time.Now())
	if diff := cmp.Diff(before, h.breaker.Status()); r == breaker.Excluded && diff != "" {
		t.Fatalf("an excluded attempt changed something: %s", diff)
	}
	if before.State == breaker.Closed && r == breaker.Success && h.breaker.State() != breaker.Closed {
		t.Fatal("a success opened it")
	}
}

// burst makes several attempts with the same end.
func (h *history) burst(t *rapid.T) {
	name, r := resource().Draw(t, "resource"), result().Draw(t, "result")
	h.repeat(t, cluster().Draw(t, "cluster"), name, rapid.IntRange(1, 12).Draw(t, "attempts"), r)
}

func (h *history) repeat(t *rapid.T, cluster, resource string, n int, r breaker.Result) {
	for range n {
		if h.ask(t, cluster, resource, false) {
			h.end(t, len(h.open)-1, r)
		}
	}
}

// oneResource fails while another is well, and an earlier attempt about it is
// under way.
func (h *history) oneResource(t *rapid.T) {
	h.repeat(t, east, secrets, 10, breaker.Success)
	h.ask(t, east, pods, false)
	h.repeat(t, east, pods, h.model.s.MinRequests, breaker.Failure)
}

func (h *history) wait(t *rapid.T) {
	advance(rapid.SampledFrom([]time.Duration{
		1, time.Millisecond, 100 * time.Millisecond, 999 * time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second,
	}).Draw(t, "time"))
}

// waitUntil lets an open time pass, to the nanosecond or one less.
func (h *history) waitUntil(t *rapid.T) {
	status := h.breaker.Status()
	if status.State != breaker.Open {
		t.Skip("not open")
	}
	if d := time.Until(status.Until) - rapid.SampledFrom([]time.Duration{0, 1}).Draw(t, "early"); d > 0 {
		advance(d)
	}
}

// compare compares everything that can be seen.
func (h *history) compare(t *rapid.T) {
	h.compareTold(t)
	now := time.Now()
	for _, cluster := range []string{east, west, north} {
		for _, name := range []string{pods, secrets, deploys} {
			if got, want := h.breaker.StateOf(cluster, name), h.model.stateOf(cluster, name, now); got != want {
				t.Fatalf("%s %s is %v, the model says %v", cluster, name, got, want)
			}
		}
	}
	got := h.breaker.Status()
	if got.State != h.model.endpoint.state || got.Width != h.model.endpoint.width {
		t.Fatalf("%+v, the model says %+v", got, h.model.endpoint)
	}
	if got.State != breaker.Closed {
		return
	}
	if n, _ := h.model.inWindow(h.model.events, h.model.endpoint.closedAt, now, everything); got.Requests != n {
		t.Fatalf("%d outcomes, the model says %d", got.Requests, n)
	}
}

// recover leaves what is under way hanging and lets all else succeed: forced
// attempts are let through soon, and in the end every circuit is closed.
func (h *history) recover(t *rapid.T) {
	advance(h.model.s.ProbeTimeout)
	for _, cluster := range []string{east, west, north} {
		if !h.ask(t, cluster, pods, true) {
			t.Fatal("refused although forced, with nothing forced for as long as a probe may take")
		}
		h.end(t, len(h.open)-1, breaker.Success)
	}
	deadline := time.Now().Add(5 * time.Minute)
	for !h.allClosed() {
		if time.Now().After(deadline) {
			t.Fatalf("never closes: %+v", h.breaker.Status())
		}
		for _, cluster := range []string{east, west, north} {
			for _, name := range []string{pods, secrets, deploys} {
				if h.ask(t, cluster, name, false) {
					h.end(t, len(h.open)-1, breaker.Success)
				}
			}
		}
		advance(500 * time.Millisecond)
	}
}

func (h *history) allClosed() bool {
	status := h.breaker.Status()
	return status.State == breaker.Closed && len(status.Circuits) == 0
}
