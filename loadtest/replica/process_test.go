// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"os"
	"testing"
	"time"
)

const (
	even   = 1.5 // times the mean, of the busiest replica: good enough
	uneven = 1.8 // is not
)

// scaleOut is three replicas that become six.
type scaleOut struct {
	*world
	before float64 // busiest, of three
	window int     // calls
	stop   func()  // the callers, before any replica ends
}

// newScaleOut has callers call three replicas, and then six.
func newScaleOut(t *testing.T, binary, config string, as callers, window int) *scaleOut {
	t.Helper()
	s := &scaleOut{world: newWorld(t, binary, "lameDuck: 0s\nfleet: {file: fleet.json}\n"+config), window: window}
	for range 3 {
		s.join()
	}
	s.tell()
	s.stop = s.call(as)
	s.before = s.busiest(window)
	for range 3 {
		s.join()
	}
	return s
}

// evensOut waits until the busiest replica has at most even times the mean.
func (s *scaleOut) evensOut(within time.Duration) {
	s.t.Helper()
	begin := time.Now()
	for {
		is := s.busiest(s.window)
		s.t.Logf("%3.0f s after there are six: the busiest has %.2f times the mean", time.Since(begin).Seconds(), is)
		if is <= even {
			return
		}
		if time.Since(begin) > within {
			s.t.Fatal("they do not even out")
		}
	}
}

// scaled are callers for a test with short ages: as many connections as API servers.
func scaled() callers {
	return callers{servers: 120, workers: 1, pace: 100 * time.Millisecond, idle: kubeAPIServerIdle}
}

// Three replicas become six. Where connections have an age, or the replicas know that some
// have joined, the busiest has at most 1.5 times the mean within a few ages. Without, the
// callers stay where they are. No call is lost.
func TestScaleOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs six processes")
	}
	const window = 2000
	binary := build(t)
	t.Run("ages", func(t *testing.T) {
		s := newScaleOut(t, binary, "limits: {connectionAge: 2s}", scaled(), window)
		defer s.stop()
		s.evensOut(patience)
		if aged := s.metric(s.replicas[0], "dispatcher_connections_aged_total"); aged == 0 {
			t.Error("no connection is counted as aged")
		}
	})
	t.Run("a fleet that knows its size", func(t *testing.T) {
		// Ages are far longer than the test, and so is the time that connections have
		// when replicas join: a part of it has to do.
		s := newScaleOut(t, binary, "limits: {connectionAge: 1h}", scaled(), window)
		defer s.stop()
		s.tell()
		aged := func() float64 { return s.metric(s.replicas[0], "dispatcher_connections_aged_total") }
		for deadline := time.Now().Add(patience); aged() < 5; s.shares(200) {
			if time.Now().After(deadline) {
				t.Fatal("no connection ends although replicas have joined")
			}
		}
		if n := s.metric(s.replicas[0], "dispatcher_fleet_replicas"); n != 6 {
			t.Errorf("%v replicas are known", n)
		}
	})
	t.Run("neither", func(t *testing.T) {
		s := newScaleOut(t, binary, "limits: {connectionAge: 0s}", scaled(), window)
		defer s.stop()
		for range 3 {
			if is := s.busiest(window); is < uneven {
				t.Errorf("the callers have moved by themselves: the busiest has %.2f times the mean", is)
			}
		}
	})
}

// TestScaleOutInTime is TestScaleOut as it is configured by default: within three minutes.
func TestScaleOutInTime(t *testing.T) {
	if os.Getenv("FULL") == "" {
		t.Skip("it takes ten minutes: FULL=1")
	}
	as := callers{servers: 150, workers: 1, pace: 150 * time.Millisecond, idle: kubeAPIServerIdle}
	binary := build(t)
	for name, config := range map[string]string{"ages and a fleet that knows its size": "limits: {connectionAge: 5m}", "no ages and a fleet that knows its size": "limits: {connectionAge: 0s}"} {
		t.Run(name, func(t *testing.T) {
			s := newScaleOut(t, binary, config, as, 10_000)
			defer s.stop()
			t.Logf("before: %.2f", s.before)
			s.tell()
			s.evensOut(3 * time.Minute)
		})
	}
	t.Run("neither", func(t *testing.T) {
		s := newScaleOut(t, binary, "limits: {connectionAge: 0s}", as, 10_000)
		defer s.stop()
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
			is := s.busiest(s.window)
			t.Logf("the busiest has %.2f times the mean", is)
			if is < uneven {
				t.Error("the callers have moved by themselves")
			}
		}
	})
}
