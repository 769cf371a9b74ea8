// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func targetAt(t *testing.T, url string) *transport.Target {
	t.Helper()
	target, err := transport.NewTarget(transport.TargetSpec{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// Each change of a circuit is counted. What is logged of a cluster is bounded, and so
// is what concerns every cluster of a target, so that no cluster's changes keep another's
// out of the log.
func TestLinesOfCircuits(t *testing.T) { synctest.Test(t, linesOfCircuits) }

func linesOfCircuits(t *testing.T) {
	var log bytes.Buffer
	counted := map[string]int{}
	o := (&telemetry{metrics: &metrics.Metrics{}}).circuits(slog.New(slog.NewTextHandler(&log, nil)))
	o.count = func(target string, _ breaker.Change) { counted[target]++ }
	one, other := targetAt(t, "https://one.example.com/"), targetAt(t, "https://other.example.com/")
	change := func(of *transport.Target, c breaker.Change) string {
		log.Reset()
		o.changed(of, netip.MustParseAddrPort("192.0.2.1:443"), c)
		return log.String()
	}
	for _, tt := range []struct {
		change      breaker.Change
		has, hasNot []string
	}{
		{breaker.Change{From: breaker.Closed, To: breaker.Open, Why: "refused"}, []string{"level=WARN", "target=https://one.example.com/", "endpoint=192.0.2.1:443", "why=refused", "left_out=0", "to=" + breaker.Open.String()}, []string{"cluster=", "resource="}},
		{breaker.Change{From: breaker.Open, To: breaker.Closed, Cluster: "east"}, []string{"level=INFO", "cluster=east", "from=" + breaker.Open.String()}, []string{"resource="}},
		{breaker.Change{From: breaker.Closed, To: breaker.Open, Cluster: "east", Resource: "/pods"}, []string{"level=WARN", "cluster=east", "resource=/pods"}, nil},
	} {
		line := change(one, tt.change)
		for _, want := range tt.has {
			if !strings.Contains(line, want) {
				t.Errorf("%+v: no %s in %s", tt.change, want, line)
			}
		}
		for _, no := range tt.hasNot {
			if strings.Contains(line, no) {
				t.Errorf("%+v: %s in %s", tt.change, no, line)
			}
		}
	}
	lines := func(of *transport.Target, c breaker.Change) (n int) {
		for range 2 * circuitLines {
			if change(of, c) != "" {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		of     *transport.Target
		change breaker.Change
		want   int
	}{
		{one, breaker.Change{}, circuitLines - 1}, // one was logged above
		{other, breaker.Change{}, circuitLines},
		{one, breaker.Change{Cluster: "east"}, circuitLines - 2},
		{other, breaker.Change{Cluster: "east"}, 0},
		{one, breaker.Change{Cluster: "west"}, circuitLines},
	} {
		if n := lines(tt.of, tt.change); n != tt.want {
			t.Errorf("%d lines about %s and %q, want %d", n, tt.of.URL(), tt.change.Cluster, tt.want)
		}
	}
	if want := map[string]int{one.URL(): 3 + 6*circuitLines, other.URL(): 4 * circuitLines}; fmt.Sprint(counted) != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", counted, want)
	}
}

// A webhook that offers another form is no trouble; one that takes its offer back is.
func TestLinesOfForms(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, `level=INFO msg="a webhook offers another form of reviews" url=https://one.example.com/ reads=protobuf configuration=c webhook=w`},
		{errors.New("415"), `level=WARN msg="a webhook is sent plain reviews again" url=https://one.example.com/ reads=protobuf configuration=c webhook=w error=415`},
	} {
		var log bytes.Buffer
		o := callObserver{transport.Silent{}, slog.New(slog.NewTextHandler(&log, nil))}
		o.Switched(t.Context(), transport.Switch{Target: targetAt(t, "https://one.example.com/"), Reads: "protobuf", Owner: hook.ID{Configuration: "c", Name: "w"}, Err: tt.err})
		if line := log.String(); !strings.HasSuffix(strings.TrimSpace(line), tt.want) || strings.Count(line, "\n") != 1 {
			t.Errorf("%v: %s", tt.err, line)
		}
	}
}

// A process is ready when it serves a configuration, until it stops.
func TestState(t *testing.T) {
	s := newState()
	if address, stopping := s.now(); address != nil || stopping {
		t.Error("at first it serves, or stops")
	}
	select {
	case <-s.ready:
		t.Error("it is ready before it serves")
	default:
	}
	s.serve(targetAddress{})
	select {
	case <-s.ready:
	case <-time.After(time.Minute):
		t.Error("it is not ready")
	}
	if address, stopping := s.now(); address != (targetAddress{}) || stopping {
		t.Errorf("it serves at %v, stopping: %t", address, stopping)
	}
	s.stop()
	if address, stopping := s.now(); address == nil || !stopping {
		t.Errorf("it serves at %v, stopping: %t", address, stopping)
	}
}

// targetAddress is an address.
type targetAddress struct{}

func (targetAddress) Network() string { return "tcp" }
func (targetAddress) String() string  { return "192.0.2.1:443" }

// What was built is said as far as it is known.
func TestBuild(t *testing.T) {
	for name, tt := range map[string]struct {
		info     *debug.BuildInfo
		revision string
	}{
		"by go run":      {nil, ""},
		"without git":    {&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-01-01"}}}, ""},
		"of a revision":  {&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-01"}}}, "abc"},
		"of no settings": {&debug.BuildInfo{}, ""},
	} {
		b := build("v1", func() (*debug.BuildInfo, bool) { return tt.info, tt.info != nil })
		if b.Version != "v1" || b.Go != runtime.Version() || b.Revision != tt.revision {
			t.Errorf("%s: built %+v", name, b)
		}
	}
}
