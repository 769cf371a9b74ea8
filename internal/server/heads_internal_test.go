// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Whoever has most heads under way loses the oldest.
func TestOldestHeadOfTheLargestGoes(t *testing.T) {
	h := newHeads(0)
	begin := func(cluster string, since int64) (c, victim *conn) {
		c = slotted(since)
		c.owner = cluster
		return c, h.begin(c)
	}
	begin("west", 1)
	var east []*conn
	for i := range leastHeads - 1 {
		c, victim := begin("east", int64(10+i))
		if victim != nil {
			t.Fatalf("head %d is closed for another", i)
		}
		east = append(east, c)
	}
	h.end(east[0])
	if _, victim := begin("west", 100); victim != nil {
		t.Error("a head that has ended counts")
	}
	if _, victim := begin("", 101); victim != east[1] {
		t.Errorf("for a stranger %+v is closed", victim)
	}
	if _, victim := begin("east", 102); victim != east[2] {
		t.Errorf("for one more of its own %+v is closed", victim)
	}
}

// Whatever begins and ends: the limit holds, and all are counted.
func TestHeadsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHeads(0)
	var all []*conn
	for step := range 5000 {
		c := slotted(int64(step))
		c.owner = fmt.Sprint(min(random.IntN(8), random.IntN(8)))
		own := h.of[c.owner]
		if victim := h.begin(c); victim != nil && h.of[victim.owner] < own {
			t.Fatalf("%s, which has %d, takes from %s, which has %d", c.owner, own, victim.owner, h.of[victim.owner])
		}
		all = append(all, c)
		if random.IntN(2) == 0 {
			h.end(all[random.IntN(len(all))])
		}
		sum := 0
		for _, n := range h.of {
			sum += n
		}
		if sum != len(h.open) || sum > leastHeads {
			t.Fatalf("%d are open, %d are counted", len(h.open), sum)
		}
	}
	for _, c := range all {
		h.end(c)
	}
	if len(h.open)+len(h.of) > 0 {
		t.Errorf("when all have ended, %d are open, of %d clusters", len(h.open), len(h.of))
	}
}
