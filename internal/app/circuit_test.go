// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// changed is a log line about a circuit.
type changed struct {
	Level, Target, Endpoint, Cluster, Resource, From, To, Why string
	LeftOut                                                   int `json:"left_out"`
}

// changes returns what is logged of circuits of a cluster, or of those that concern
// every cluster.
func (r *rig) changes(cluster string) (list []changed) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for line := range strings.Lines(r.logs.String()) {
		var c struct {
			Msg string
			changed
		}
		if json.Unmarshal([]byte(line), &c) == nil && c.Msg == "circuit changed" && c.Cluster == cluster {
			list = append(list, c.changed)
		}
	}
	return list
}

// asksUntil asks until a circuit of the cluster is logged as one that has gone to the
// state, and returns that line.
func (r *rig) asksUntil(q question, to string) (last changed) {
	r.t.Helper()
	r.eventually("the circuit is "+to, func() bool {
		r.ask(q)
		if list := r.changes(q.cluster); len(list) > 0 {
			last = list[len(list)-1]
		}
		return last.To == to
	})
	return last
}

// Each change of a circuit is logged, with whose it is and why, and counted.
func TestCircuitChangesAreLogged(t *testing.T) {
	r := newRig(t)
	r.cluster("west", "")
	r.bind("breaker: {openTime: 100ms, minRequests: 2}")
	r.play((*call).fail)
	r.start()
	want := changed{"WARN", r.webhook.URL + "/policy", strings.TrimPrefix(r.webhook.URL, "https://"), "east", "/pods", "closed", "open", "too many calls failed", 0}
	if got := r.asksUntil(question{cluster: "east"}, "open"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.play((*call).allow)
	want.Level, want.From, want.To, want.Why = "INFO", "ramping", "closed", "attempts succeed"
	if got := r.asksUntil(question{cluster: "east"}, "closed"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.webhook.Listener.Close()
	r.webhook.CloseClientConnections()
	r.eventually("the endpoint's circuit opens", func() bool { r.ask(question{cluster: "west"}); return len(r.changes("")) > 0 })
	want = changed{"WARN", want.Target, want.Endpoint, "", "", "closed", "open", "connections failed", 0}
	if got := r.changes("")[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	_, metrics := r.admin("metrics")
	for _, series := range []string{`circuit="resource",state="open"`, `circuit="resource",state="closed"`, `circuit="endpoint",state="open"`} {
		if !strings.Contains(metrics, fmt.Sprintf(`dispatcher_breaker_transitions_total{%s,target=%q} `, series, want.Target)) {
			t.Errorf("no %s in %s", series, metrics)
		}
	}
}

// However often the circuits of one cluster change, those of another are logged, and
// so is what concerns every cluster.
func TestCircuitsOfOneClusterDrownNoOther(t *testing.T) {
	r := newRig(t)
	r.cluster("west", "")
	r.bind("breaker: {openTime: 100ms, minRequests: 1, failurePercent: 1}")
	var calls atomic.Int64
	r.play(func(c *call) {
		if calls.Add(1)%80 == 0 {
			c.fail()
			return
		}
		c.allow()
	})
	r.start()
	client := r.clientAs("east")
	r.eventually("lines of east are left out", func() bool {
		for range 80 {
			r.ask(question{cluster: "east", client: client, timeout: "1s"})
		}
		return r.transitions() > len(r.changes("east"))+4
	})
	r.play((*call).fail)
	r.asksUntil(question{cluster: "west"}, "open")
	if got := r.changes("west")[0]; got.LeftOut != 0 || got.From != "closed" {
		t.Errorf("%d changes of another cluster are left out before %+v", got.LeftOut, got)
	}
	r.webhook.Listener.Close()
	r.webhook.CloseClientConnections()
	r.eventually("the endpoint's circuit is logged", func() bool { r.ask(question{cluster: "west"}); return len(r.changes("")) > 0 })
	if got := r.changes("")[0]; got.LeftOut != 0 {
		t.Errorf("%d changes of a cluster are left out before %+v", got.LeftOut, got)
	}
}

// transitions returns how many changes of circuits are counted.
func (r *rig) transitions() (n int) {
	r.t.Helper()
	_, metrics := r.admin("metrics")
	for line := range strings.Lines(metrics) {
		if rest, ok := strings.CutPrefix(line, "dispatcher_breaker_transitions_total{"); ok {
			_, value, _ := strings.Cut(rest, "} ")
			n += must(strconv.Atoi(strings.TrimSpace(value)))
		}
	}
	return n
}
