// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
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

// Clusters leave an eighth of the slots to strangers, at least one of several; all but
// one is theirs where there are two. As many heads may be under way, sixteen at least.
func TestShares(t *testing.T) {
	for limit, strangers := range map[int]int{1: 0, 2: 1, 8: 1, 15: 1, 16: 2, 100: 12, 4096: 512} {
		if s := newSlots(limit); s.limit != limit || s.strangers != strangers {
			t.Errorf("of %d slots %d are for strangers, want %d", s.limit, s.strangers, strangers)
		}
	}
	for connections, limit := range map[int]int{1: 16, 135: 16, 136: 17, 4096: 512} {
		if h := newHeads(connections); h.limit != limit {
			t.Errorf("of %d connections %d may be amid a head, want %d", connections, h.limit, limit)
		}
	}
}

// While there are slots nothing waits. Where there are none, a stranger has had the
// time for its handshake before it makes way; where all are clusters', no time helps.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		crowded := func(when string, want time.Duration) {
			t.Helper()
			if got := s.crowded(); got != want {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		join := func() *conn {
			c := slotted(time.Now().UnixNano())
			s.enter(c)
			return c
		}
		crowded("empty", 0)
		first := join()
		crowded("a slot is free", 0)
		<-time.After(10 * time.Millisecond) // of the bubble's clock
		second := join()
		crowded("full", handshakeTime-10*time.Millisecond)
		<-time.After(handshakeTime - 10*time.Millisecond)
		crowded("the older one has had its time", 0)
		<-time.After(time.Hour)
		crowded("long ago", 0)
		if s.claim(first, "a") != nil {
			t.Fatal("no slot for a cluster")
		}
		second.since.Store(time.Now().UnixNano())
		crowded("the other one is new", handshakeTime)
		s.leave(second)
		crowded("it has left", 0)
	})
}

// Who is known is counted for one cluster, as long as the connection is open.
func TestClaim(t *testing.T) {
	s := newSlots(16)
	c := slotted(1)
	s.enter(c)
	counts := func(when string, want map[string]int) {
		t.Helper()
		for cluster, n := range want {
			if len(s.known[cluster]) != n {
				t.Errorf("%s: %q has %d, want %d", when, cluster, len(s.known[cluster]), n)
			}
		}
		if len(s.known) != len(want) {
			t.Errorf("%s: %d clusters are known, want %d", when, len(s.known), len(want))
		}
	}
	counts("a stranger", map[string]int{"": 1})
	s.claim(c, "a")
	s.claim(c, "a")
	counts("of a", map[string]int{"": 0, "a": 1})
	s.claim(c, "b")
	counts("of b", map[string]int{"": 0, "b": 1})
	s.leave(c)
	s.leave(c)
	counts("left", map[string]int{"": 0})
	if s.claim(c, "a") != nil || c.owner != "b" {
		t.Errorf("a connection that has left is of %q", c.owner)
	}
	counts("claimed after that", map[string]int{"": 0})
	if s.count() != 0 {
		t.Errorf("%d are open", s.count())
	}
}

// A cluster that has most loses its oldest connection to one that has less, even where
// all have a request.
func TestSurplus(t *testing.T) {
	s := newSlots(8)
	join := func(cluster string, since int64) (*conn, *conn) {
		c := slotted(since)
		c.busy.Store(true)
		s.enter(c)
		return c, s.claim(c, cluster)
	}
	var of [2][]*conn
	for i := range 6 {
		c, victim := join([]string{"a", "b"}[i%2], int64(i))
		if victim != nil {
			t.Fatal("a slot is taken away")
		}
		of[i%2] = append(of[i%2], c)
	}
	if _, victim := join("c", 10); victim != nil {
		t.Fatal("the last slot is taken away")
	}
	if more, victim := join("c", 11); victim != of[0][0] && victim != of[1][0] || more == victim {
		t.Errorf("%+v makes way for the second of c", victim)
	}
	if len(s.known["a"])+len(s.known["b"]) != 5 || len(s.known["c"]) != 2 {
		t.Errorf("a has %d, b %d, c %d", len(s.known["a"]), len(s.known["b"]), len(s.known["c"]))
	}
}

// filled is slots with connections of clusters, all idle since the times given, and
// then with as many strangers as there may be.
func filled(t *testing.T, limit int, of map[string][]int64) *slots {
	t.Helper()
	s := newSlots(limit)
	for cluster, list := range of {
		for _, since := range list {
			c := slotted(since)
			if s.enter(c) != nil || s.claim(c, cluster) != nil {
				t.Fatal("a slot is taken away")
			}
		}
	}
	for s.count() < limit {
		s.enter(slotted(0))
	}
	return s
}

// However many strangers there are, it is a connection of a cluster that makes way for
// one of a cluster.
func TestStrangersMakeNoWayForClusters(t *testing.T) {
	of := map[string][]int64{}
	for i := range 35 {
		of[fmt.Sprint("c", i)] = []int64{1}
	}
	s := filled(t, 40, of)
	c := slotted(2)
	s.enter(c)
	if victim := s.claim(c, "c0"); victim == nil || victim.owner != "c0" || victim == c {
		t.Errorf("%+v makes way", victim)
	}
	if clusters := s.count() - len(s.known[""]); clusters != 35 {
		t.Errorf("clusters have %d of 35 slots", clusters)
	}
}

// Of two clusters that have as many connections, the one that wants more loses one, and
// never the new one while another is idle.
func TestNoneIsTakenFromAnEqual(t *testing.T) {
	for range 20 { // whatever the order in which clusters are looked at
		s := filled(t, 8, map[string][]int64{"a": {10, 11, 12, 13}, "b": {20, 21, 22}})
		c := slotted(1)
		s.enter(c)
		if victim := s.claim(c, "b"); victim == nil || victim.owner != "b" || victim == c {
			t.Fatalf("%+v makes way", victim)
		}
	}
}
