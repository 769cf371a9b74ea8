// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/replica"
)

// doubled is a fleet of 100 clusters that doubles its replicas from 6 to 12.
func doubled(age time.Duration) replica.Simulation {
	return replica.Simulation{
		Seed: 1, Age: age, Clusters: 100, APIServers: 3, Rate: 3000, Call: 10 * time.Millisecond,
		Replicas: 6, Scaled: 12, After: 8 * time.Minute,
		Look: []time.Duration{2 * time.Minute, 6 * time.Minute, 10 * time.Minute}, Window: time.Minute,
	}
}

// After a scale-out the new replicas get their share only where connections end
// with age, and sooner the shorter that is.
func TestReplicasEvenOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates millions of calls")
	}
	none := doubled(0).Run()
	t.Logf("no age:  %s", text(none))
	if last := none.Shares[2]; last.Max < 1.7 || last.Min > 0.4 {
		t.Errorf("without an age the replicas even out by themselves: %+v", last)
	}
	before := none
	for _, age := range []time.Duration{300 * time.Second, 120 * time.Second, 60 * time.Second} {
		result := doubled(age).Run()
		t.Logf("age %3v: %s", age.Seconds(), text(result))
		if last := result.Shares[2]; last.Max > none.Shares[2].Max-0.2 || last.Min < 0.6 {
			t.Errorf("with age %v they do not even out: %+v", age, last)
		}
		if result.Shares[0].Max > before.Shares[0].Max || result.DialsPerSecond < before.DialsPerSecond {
			t.Errorf("age %v evens out no sooner than a longer one, or costs fewer dials", age)
		}
		before = result
	}
}

// What is known to have joined is found within two minutes, at no cost before and after.
func TestJoinedReplicasEvenOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates millions of calls")
	}
	none, joined := doubled(0), doubled(0)
	joined.Joined = time.Minute
	for _, s := range []*replica.Simulation{&none, &joined} {
		s.After, s.Look = 4*time.Minute, []time.Duration{2 * time.Minute}
	}
	before, after := none.Run(), joined.Run()
	t.Logf("nobody knows: %s", text(before))
	t.Logf("known:        %s", text(after))
	if first := after.Shares[0]; first.Max > even || first.Min < 0.5 {
		t.Errorf("two minutes after they have joined: %+v", first)
	}
	if after.DialsPerSecond > 1.2*before.DialsPerSecond {
		t.Errorf("it costs %.1f dials/s, and %.1f without", after.DialsPerSecond, before.DialsPerSecond)
	}
}

// The simulation of what TestScaleOutInTime does with processes: docs/sizing.md has both.
func TestSimulatedScaleOut(t *testing.T) {
	for _, c := range []struct {
		age, joined time.Duration
		even        bool
	}{{0, 0, false}, {0, time.Minute, true}, {5 * time.Minute, time.Minute, true}} {
		s := replica.Simulation{
			Seed: 1, Age: c.age, Joined: c.joined, Clusters: 150, APIServers: 1, Even: true, Rate: 1000, Call: 5 * time.Millisecond,
			Replicas: 3, Scaled: 6, After: 2 * time.Minute, Look: []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute}, Window: 10 * time.Second,
		}
		result := s.Run()
		t.Logf("age %v, joined within %v: %s", c.age, c.joined, text(result))
		last := result.Shares[len(result.Shares)-1]
		if c.even && last.Max > even || !c.even && last.Max < uneven {
			t.Errorf("age %v, joined within %v: %+v", c.age, c.joined, last)
		}
	}
}

func text(r replica.Result) string {
	var b strings.Builder
	for _, s := range r.Shares {
		fmt.Fprintf(&b, "%.2f / %.2f after %v, ", s.Max, s.Min, s.At)
	}
	fmt.Fprintf(&b, "%.1f dials/s, %d connections", r.DialsPerSecond, r.Connections)
	return b.String()
}

func TestSimulationIsRepeatable(t *testing.T) {
	s := doubled(time.Minute)
	s.Clusters, s.Rate, s.After = 5, 100, time.Minute
	a, b := s.Run(), s.Run()
	if a.DialsPerSecond != b.DialsPerSecond || a.Shares[2] != b.Shares[2] {
		t.Errorf("%+v and %+v", a, b)
	}
}
