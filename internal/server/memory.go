// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"sync"
	"time"
)

// memory bounds the bytes of requests' bodies: those being read, being
// decompressed, and held for webhooks that are still called. Before it takes more
// memory a request takes that many bytes here, for its cluster.
//
// A cluster may hold as many bytes as are left free after it has taken them. So one
// cluster alone gets half, two that want all get a third each, and whoever comes
// then still finds the last third: there is no moment at which clusters that hold
// much keep one out that holds nothing (Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches"). It is safe for concurrent use.
type memory struct {
	limit   int64
	buffers *buffers

	mu      sync.Mutex
	used    int64
	holders map[string]*holder // of every cluster that ever sent a body
	queue   []*holder          // those with claims
}

// holder is what one cluster holds.
type holder struct {
	memory *memory
	give   func([]byte) // put, made once
	held   int64
	claims []*claim // first come, first served
}

// claim is a request that waits for memory.
type claim struct {
	bytes   int64
	granted chan struct{} // closed when it has them
}

const (
	// memoryWait is how long a request waits for memory. It smooths a burst. The
	// bodies of a cluster that is at its share are often held until a webhook
	// answers, which is too long to wait for.
	memoryWait = 100 * time.Millisecond
	// maxClaims is how many requests of one cluster wait.
	maxClaims = 64
)

func newMemory(limit int64) *memory {
	return &memory{limit: limit, buffers: newBuffers(), holders: map[string]*holder{}}
}

// of returns the holder of a cluster.
func (m *memory) of(cluster string) *holder {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.holders[cluster]
	if h == nil {
		h = &holder{memory: m}
		h.give = h.put
		m.holders[cluster] = h
	}
	return h
}

// held returns the number of bytes taken, by cluster. Those that hold nothing are left
// out.
func (m *memory) held() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := map[string]int64{}
	for name, h := range m.holders {
		if h.held > 0 {
			held[name] = h.held
		}
	}
	return held
}

// take takes n bytes, or waits for them until memoryWait is over or until comes. It
// reports false if there are none. Otherwise release must be called, or give for the
// slice that has them.
func (h *holder) take(n int, until time.Time) bool {
	c, ok := h.enter(int64(n))
	if c == nil {
		return ok
	}
	timer := time.NewTimer(min(memoryWait, time.Until(until)))
	defer timer.Stop()
	select {
	case <-c.granted:
		return true
	case <-timer.C:
		return h.leave(c)
	}
}

// enter takes n bytes (ok), or a place in the queue (c), or nothing.
func (h *holder) enter(n int64) (c *claim, ok bool) {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(h.claims) == 0 && m.fits(h, n):
		m.add(h, n)
		return nil, true
	case len(h.claims) == maxClaims, 2*n > m.limit: // not even alone
		return nil, false
	}
	c = &claim{bytes: n, granted: make(chan struct{})}
	if h.claims = append(h.claims, c); len(h.claims) == 1 {
		m.queue = append(m.queue, h)
	}
	return c, false
}

// leave gives up waiting. It reports true if c was granted meanwhile.
func (h *holder) leave(c *claim) bool {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(h.claims, c)
	if i < 0 {
		return true
	}
	m.forget(h, i)
	m.grant() // it may have stood in front of a smaller one
	return false
}

// release gives n bytes back.
func (h *holder) release(n int) {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(h, -int64(n))
	m.grant()
}

// put releases the bytes of data, which nobody may use any more.
func (h *holder) put(data []byte) {
	h.release(cap(data))
	h.memory.buffers.put(data)
}

// The rest is called with the lock held.

func (m *memory) fits(h *holder, n int64) bool { return h.held+n <= m.limit-m.used-n }

func (m *memory) add(h *holder, n int64) {
	m.used += n
	h.held += n
}

// grant gives what is free to those that wait, the cluster that holds least first.
func (m *memory) grant() {
	for {
		var next *holder
		for _, h := range m.queue {
			if m.fits(h, h.claims[0].bytes) && (next == nil || h.held < next.held) {
				next = h
			}
		}
		if next == nil {
			return
		}
		c := next.claims[0]
		m.forget(next, 0)
		m.add(next, c.bytes)
		close(c.granted)
	}
}

// forget takes the claim at i out of the queue.
func (m *memory) forget(h *holder, i int) {
	if h.claims = slices.Delete(h.claims, i, i+1); len(h.claims) > 0 {
		return
	}
	at := slices.Index(m.queue, h)
	m.queue = slices.Delete(m.queue, at, at+1)
}

// buffers recycles the memory of request bodies. It holds at most pooledBuffers
// of at most pooledBytes each, together 32 MiB: nearly all reviews are smaller,
// and more are seldom in flight.
type buffers struct{ free chan []byte }

const (
	pooledBuffers = 512
	pooledBytes   = 64 << 10
	// leastBytes is the size of the smallest buffer: most reviews fit into it, and it
	// is what a request costs that announces much and sends little.
	leastBytes = 16 << 10
)

func newBuffers() *buffers { return &buffers{free: make(chan []byte, pooledBuffers)} }

// get returns memory to overwrite, leastBytes or more.
func (b *buffers) get() []byte {
	select {
	case data := <-b.free:
		return data
	default:
		return make([]byte, 0, leastBytes)
	}
}

// put takes data back. Nobody may use it any more.
func (b *buffers) put(data []byte) {
	if cap(data) < leastBytes || cap(data) > pooledBytes {
		return
	}
	select {
	case b.free <- data[:0]:
	default:
	}
}
