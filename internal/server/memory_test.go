// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const soon = time.Minute

func later() time.Time { return time.Now().Add(soon) }

// fill takes as many blocks as there are.
func (h *holder) fill(block int) (taken int) {
	for {
		if c, ok := h.enter(int64(block)); !ok {
			if c != nil {
				h.leave(c)
			}
			return taken
		}
		taken += block
	}
}

// Whatever others hold, one that holds nothing gets something.
func TestShareOfMemory(t *testing.T) {
	const limit = 1 << 20
	m := newMemory(limit)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for i, name := range names {
		got := m.of(name).fill(1 << 10)
		// Those before have all that they could get: each time half of the rest goes.
		if want := limit >> (i + 1); got < want*9/10 || got > want*11/10 {
			t.Errorf("cluster %d got %d bytes, want about %d", i, got, want)
		}
	}
	for range 1000 { // they all go on taking and giving back
		h := m.of(names[rand.IntN(len(names))])
		if h.held >= 8<<10 {
			h.release(8 << 10)
		}
		m.of(names[rand.IntN(len(names))]).fill(1 << 10)
	}
	if got := m.of("newcomer").fill(1 << 10); got < limit/(4*len(names)) {
		t.Errorf("a newcomer got %d bytes", got)
	}
	var sum int64
	for _, held := range m.held() {
		sum += held
	}
	if sum != m.used || sum > limit {
		t.Errorf("%d bytes are in use, %d in all", m.used, sum)
	}
}

func TestMemoryIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		m := newMemory(limit)
		east := m.of("east")
		east.fill(1 << 10)
		start := time.Now()
		if east.take(1<<10, later()) || time.Since(start) != memoryWait {
			t.Errorf("taken or refused after %v", time.Since(start))
		}
		if start = time.Now(); east.take(1<<10, start.Add(time.Millisecond)) || time.Since(start) != time.Millisecond {
			t.Errorf("taken or refused after %v", time.Since(start))
		}
		if start = time.Now(); east.take(limit, later()) || time.Since(start) != 0 {
			t.Error("it waits for what there will never be")
		}
		var got sync.WaitGroup
		for range 3 {
			got.Go(func() {
				if !east.take(1<<10, later()) {
					t.Error("not granted")
				}
			})
		}
		synctest.Wait()
		for range 3 {
			east.release(1 << 10)
		}
		got.Wait()
	})
}

// What is given back goes to the waiting cluster that holds least.
func TestMemoryGoesToWhoHoldsLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(851)
		east, west, north := m.of("east"), m.of("west"), m.of("north")
		for h, held := range map[*holder]int64{east: 201, west: 200, north: 300} {
			m.add(h, held)
		}
		var both sync.WaitGroup
		for h, granted := range map[*holder]bool{east: false, west: true} { // there is enough for one
			both.Go(func() {
				if h.take(100, later()) != granted {
					t.Errorf("of the holder of %d bytes: %v", h.held, !granted)
				}
			})
		}
		synctest.Wait()
		north.release(300)
		both.Wait()
		if len(m.queue) > 0 {
			t.Errorf("%d are waiting", len(m.queue))
		}
	})
}

func TestMemoryQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(1 << 20)
		h := m.of("east")
		h.fill(1 << 10)
		var waiting sync.WaitGroup
		for range maxClaims {
			waiting.Go(func() { h.take(1<<10, later()) })
		}
		synctest.Wait()
		if start := time.Now(); h.take(1<<10, later()) || time.Since(start) != 0 {
			t.Error("one more waits")
		}
		waiting.Wait()
	})
}
