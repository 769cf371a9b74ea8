// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// slotted is a connection as slots sees it.
func slotted(since int64) *conn {
	c := &conn{}
	c.since.Store(since)
	return c
}

// The connection that has been idle for longest goes first, of the cluster that
// has most.
func TestLongestIdleGoesFirst(t *testing.T) {
	s := newSlots(8) // 7 of them of clusters
	join := func(cluster string, since int64) *conn {
		c := slotted(since)
		if victim := s.enter(c); victim != nil {
			t.Fatalf("%s: a slot is taken away", cluster)
		}
		return c
	}
	small := join("b", 1)
	if s.claim(small, "b") != nil {
		t.Fatal("no slot for b")
	}
	var of []*conn
	for i := range 6 {
		c := join("a", int64(10+i))
		if s.claim(c, "a") != nil {
			t.Fatal("no slot for a")
		}
		of = append(of, c)
	}
	of[0].busy.Store(true)
	of[1].since.Store(100)
	if got := s.claim(join("a", 200), "a"); got != of[2] {
		t.Errorf("%+v makes way, want the third", got)
	}
	for _, c := range of {
		c.busy.Store(true)
	}
	for c := range s.known["a"] {
		c.busy.Store(true)
	}
	fresh := join("a", 300)
	if got := s.claim(fresh, "a"); got != fresh {
		t.Error("a cluster that has most takes more")
	}
	if got := s.claim(join("b", 300), "b"); got != of[0] {
		t.Error("the oldest request of the cluster that has most does not make way for another cluster")
	}
}

// Whatever comes and goes: the limits hold, and nobody loses a connection to a
// cluster that has more.
func TestSlotsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 2, 3, 10, 40} {
		s := newSlots(limit)
		var all []*conn
		for step := range 5000 {
			c := slotted(int64(step))
			c.busy.Store(random.IntN(3) == 0)
			if victim := s.enter(c); victim == c {
				continue
			}
			all = append(all, c)
			if random.IntN(4) > 0 {
				cluster := fmt.Sprint(min(random.IntN(8), random.IntN(8)))
				victim := s.claim(c, cluster)
				if victim != nil && len(s.known[victim.owner])+1 < len(s.known[cluster]) {
					t.Fatalf("limit %d: %s, which has %d, takes from %s, which has %d", limit, cluster, len(s.known[cluster]), victim.owner, len(s.known[victim.owner]))
				}
			}
			if random.IntN(3) == 0 {
				s.leave(all[random.IntN(len(all))])
			}
			sum := 0
			for _, list := range s.known {
				sum += len(list)
			}
			if sum != len(s.open) || sum > limit || sum-len(s.known[""]) > limit-s.strangers {
				t.Fatalf("limit %d: %d are open, %d are counted, %d of clusters", limit, len(s.open), sum, sum-len(s.known[""]))
			}
		}
	}
}

func TestLifetime(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 150 * time.Second, 0.5: 300 * time.Second, 0.75: 375 * time.Second} {
		if got := lifetime(300*time.Second, random); got != want {
			t.Errorf("%v: %v, want %v", random, got, want)
		}
	}
}
