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

// A cluster may hold as many bytes as are left free after it, to the last one. Who
// holds nothing is not listed.
func TestMemoryToTheLastByte(t *testing.T) {
	m := newMemory(100)
	east, west := m.of("east"), m.of("west")
	for _, step := range []struct {
		of    *holder
		bytes int64
		fits  bool
	}{{east, 51, false}, {east, 50, true}, {west, 26, false}, {west, 25, true}, {east, 1, false}, {west, 1, false}} {
		m.mu.Lock()
		fits := m.fits(step.of, step.bytes)
		if fits {
			m.add(step.of, step.bytes)
		}
		m.mu.Unlock()
		if fits != step.fits {
			t.Errorf("%d more bytes: %t", step.bytes, fits)
		}
	}
	if m.of("east") != east {
		t.Error("a cluster has two holders")
	}
	m.of("idle")
	if held := m.held(); len(held) != 2 || held["east"] != 50 || held["west"] != 25 {
		t.Errorf("held %v", held)
	}
	east.release(50)
	if held := m.held(); len(held) != 1 || held["west"] != 25 || m.used != 25 {
		t.Errorf("held %v of %d", held, m.used)
	}
}

// What a cluster alone could have is waited for; what it never can is refused at once.
func TestMemoryThatIsNeverThere(t *testing.T) {
	m := newMemory(100)
	m.of("west").fill(1)
	for n, waits := range map[int64]bool{50: true, 51: false} {
		c, ok := m.of("east").enter(n)
		if ok || (c != nil) != waits {
			t.Errorf("%d of 100 bytes: taken %t, waits %t", n, ok, c != nil)
		}
		if c != nil && m.of("east").leave(c) {
			t.Error("granted")
		}
	}
}

// Requests of one cluster get memory in the order in which they came, also where a
// later one would fit. When the first gives up, those behind it need not wait longer.
func TestMemoryInOrder(t *testing.T) {
	m := newMemory(100)
	h := m.of("east")
	h.enter(40)
	first, _ := h.enter(30)
	second, ok := h.enter(10)
	if first == nil || second == nil || ok {
		t.Fatal("a later request overtakes an earlier one")
	}
	granted := func(c *claim) bool {
		select {
		case <-c.granted:
			return true
		default:
			return false
		}
	}
	if granted(first) || granted(second) {
		t.Fatal("granted what there is not")
	}
	if h.leave(first) || !granted(second) || h.held != 50 || len(m.queue) > 0 {
		t.Errorf("the first gives up: the second is granted: %t, %d bytes are held", granted(second), h.held)
	}
	if !h.leave(second) {
		t.Error("what was granted meanwhile is not kept")
	}
	h.release(50)
	if m.used != 0 || h.held != 0 {
		t.Errorf("%d bytes are in use", m.used)
	}
}

// Of clusters that hold the same, the one that came first gets what is given back.
func TestMemoryAmongEquals(t *testing.T) {
	m := newMemory(90)
	north := m.of("north")
	north.enter(45)
	var claims []*claim
	for _, name := range []string{"east", "west"} {
		c, _ := m.of(name).enter(30)
		claims = append(claims, c)
	}
	north.release(30) // 75 are free, and 45 after one of them
	for i, want := range []bool{true, false} {
		select {
		case <-claims[i].granted:
			if !want {
				t.Error("the second is granted")
			}
		default:
			if want {
				t.Error("the first is not granted")
			}
		}
	}
}

// Of clusters that wait, the one that holds least gets what is given back, whoever came
// first.
func TestMemoryGoesToTheLeast(t *testing.T) {
	for _, order := range [][]string{{"much", "little"}, {"little", "much"}} {
		m := newMemory(851)
		for name, held := range map[string]int64{"much": 201, "little": 200, "north": 300} {
			m.add(m.of(name), held)
		}
		claims := map[string]*claim{}
		for _, name := range order {
			claims[name], _ = m.of(name).enter(100)
		}
		m.of("north").release(300)
		if m.of("little").held != 300 || m.of("much").held != 201 || m.of("little").leave(claims["little"]) != true || m.of("much").leave(claims["much"]) {
			t.Errorf("%q: held %v", order, m.held())
		}
	}
}

// Buffers of a common size are used again, all others are left to the collector.
func TestBuffers(t *testing.T) {
	for size, kept := range map[int]bool{leastBytes - 1: false, leastBytes: true, pooledBytes: true, pooledBytes + 1: false} {
		b := newBuffers()
		b.put(append(make([]byte, 0, size), "used"...))
		got := b.get()
		if (cap(got) == size) != kept || len(got) != 0 || cap(got) < leastBytes {
			t.Errorf("%d bytes: got %d of %d", size, len(got), cap(got))
		}
	}
	b := newBuffers()
	for range pooledBuffers + 1 {
		b.put(make([]byte, 0, leastBytes))
	}
	if len(b.free) != pooledBuffers {
		t.Errorf("%d buffers are kept", len(b.free))
	}
}
