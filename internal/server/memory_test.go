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
		east, west := m.of("east"), m.of("west")
		first := east.fill(1 << 10)
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
		// West holds less: what is given back is west's first.
		second := west.fill(1 << 10)
		order := make(chan string, 2)
		for name, h := range map[string]*holder{"east": east, "west": west} {
			got.Go(func() {
				if h.take(512, later()) {
					order <- name
				}
			})
			synctest.Wait()
		}
		for h := east; len(order) == 0; h.release(256) {
			first -= 256
			synctest.Wait()
		}
		if name := <-order; name != "west" {
			t.Errorf("%s was first", name)
		}
		got.Wait()
		if len(m.queue) > 0 || second == 0 {
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
