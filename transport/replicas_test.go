// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Replicas share the burst, and each has some of it.
func TestReplicasShareTheBurst(t *testing.T) {
	for replicas, want := range map[int]int{0: 10, 1: 10, 2: 5, 3: 3, 10: 1, 200: 1} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			now, total := time.Unix(1_000_000, 0), 0
			var cs callers
			cs.burst.replicas = func() int { return replicas }
			for i := range 100 { // clusters that each call once
				if cs.of(fmt.Sprint(i), now).budget.take(now) {
					total++
				}
			}
			if total != want {
				t.Errorf("%d extra attempts of one replica, want %d", total, want)
			}
		})
	}
}

// From one replica to ten, what all spend on a webhook that is down does not grow: the
// share goes with the calls, and the burst is divided.
func TestExtraAttemptsDoNotGrowWithReplicas(t *testing.T) {
	spent := func(replicas, calls int, told bool) (extra int) {
		now := time.Unix(1_000_000, 0)
		for range replicas {
			var cs callers
			if told {
				cs.burst.replicas = func() int { return replicas }
			}
			for range calls / replicas {
				b := &cs.of("east", now).budget
				b.first(now)
				if b.take(now) { // each call fails, and wants to be repeated
					extra++
				}
			}
		}
		return extra
	}
	const calls = 2000 // within one window
	alone, told, untold := spent(1, calls, false), spent(10, calls, true), spent(10, calls, false)
	t.Logf("one alone: %d, ten together: %d, ten that do not know of each other: %d", alone, told, untold)
	if told > alone+5 { // rounding: a replica that has a share has a whole number of it
		t.Errorf("ten replicas make %d extra attempts, one makes %d", told, alone)
	}
	if untold < alone+30 {
		t.Errorf("ten that do not know of each other make %d, one %d: the test shows nothing", untold, alone)
	}
}

// The Resolver says how many replicas there are before anybody calls.
func TestResolverTellsTheReplicas(t *testing.T) {
	target, err := NewTarget(TargetSpec{URL: "https://10.0.0.1/"})
	if err != nil {
		t.Fatal(err)
	}
	size := 5
	r := NewResolver(ResolverConfig{Replicas: func() int { return size }})
	r.Refresh(context.Background(), target)
	if got := target.callers.burst.size(); got != 2 {
		t.Errorf("the burst is %d", got)
	}
	if size = 1; target.callers.burst.size() != 10 {
		t.Error("it is divided by what was")
	}
	size = 1000
	e := target.Endpoints()[0]
	for range 3 {
		ticket, ok := e.breaker.Allow("east", "pods")
		if !ok {
			t.Fatal("the circuit is open")
		}
		ticket.Done(breaker.ConnectFailure)
	}
	if until := time.Until(e.breaker.Status().Until); until < 7*time.Second { // 4 s to 6 s for one alone
		t.Errorf("it is open for %v, as for one replica", until)
	}
}

// A limit that changes takes nothing back, and lets through what it allows from then on.
func TestSlotsAreResized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Int64
		limit.Store(100)
		p := slotPool{holders: map[holder]*holding{}, limit: 100, free: 100, allowed: func() int { return int(limit.Load()) }}
		who, other := holder{cluster: "east"}, holder{cluster: "west"}
		taken := 0
		for p.take(who) {
			taken++
		}
		if taken != 75 {
			t.Errorf("%d are taken", taken)
		}
		limit.Store(20)
		if p.take(other) {
			t.Error("there is one beyond the limit")
		}
		var got atomic.Bool
		var waiting sync.WaitGroup
		waiting.Go(func() { got.Store(p.acquire(other, time.Now().Add(time.Minute))) })
		synctest.Wait()
		for range 55 { // 20 are left
			p.release(who)
		}
		if synctest.Wait(); got.Load() {
			t.Error("one is granted while all that the limit allows are taken")
		}
		p.release(who)
		if waiting.Wait(); !got.Load() {
			t.Error("none is granted when one is free")
		}
		limit.Store(0) // nobody says so, and it would stop everything
		for range 19 {
			p.release(who)
		}
		p.release(other)
		if !p.take(other) || p.take(who) {
			t.Error("the least limit is not 1")
		}
		p.release(other)
		limit.Store(100)
		for taken = 0; p.take(who); taken++ {
		}
		if taken != 75 {
			t.Errorf("%d are taken when the limit is back", taken)
		}
	})
}

// Whatever the limit does meanwhile: what is taken and what is free are the limit, and no
// more is granted than it allows.
func TestResizedSlotsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, taken := 10, map[holder]int{}
		p := slotPool{holders: map[holder]*holding{}, limit: limit, free: limit, allowed: func() int { return limit }}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			who := holder{cluster: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")}
			all := taken[holder{cluster: "a"}] + taken[holder{cluster: "b"}] + taken[holder{cluster: "c"}]
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				limit = rapid.IntRange(1, 12).Draw(t, "limit")
			case 1:
				if taken[who] > 0 {
					p.release(who)
					taken[who]--
				}
			default:
				if p.take(who) {
					taken[who]++
					if all+1 > limit {
						t.Fatalf("%d are taken of %d", all+1, limit)
					}
				} else if all == 0 {
					t.Fatal("there is none although none is taken")
				}
			}
		}
	})
}

// An Endpoint asks how many are allowed.
func TestAllowedSlots(t *testing.T) {
	c := NewClient(ClientConfig{Concurrency: 100, Allowed: func() int { return 4 }})
	defer c.Close()
	e := newEndpoint(&origin{}, netip.MustParseAddrPort("10.0.0.1:443"), breaker.Settings{})
	c.adopt(e)
	taken := 0
	for e.slots.take(holder{cluster: "east"}) {
		taken++
	}
	if taken != 3 { // three quarters
		t.Errorf("%d are taken", taken)
	}
}
