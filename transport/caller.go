// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// callerIdle is how long a cluster that does not call is remembered.
	callerIdle = time.Minute
	// largeReview is the size in bytes from which reviews are a class of their own:
	// they take longer, and say nothing about small ones.
	largeReview = 64 << 10
	// maxWaiting is how many calls of one cluster wait for a circuit of one Target;
	// further ones fail at once.
	maxWaiting = 16
)

// caller is one cluster as a caller of a Target: what depends on the reviews that
// it sends, and so is never shared. It is safe for concurrent use.
type caller struct {
	budget  budget
	recent  [2]recent    // of small and large reviews
	spared  atomic.Int64 // until when there are no extra attempts, in Unix nanoseconds
	hangs   atomic.Bool  // what failed last was not answered in time
	waiting atomic.Int64 // calls that wait for a circuit
	used    atomic.Int64 // in Unix nanoseconds
}

// durations returns how long reviews of size bytes took lately.
func (c *caller) durations(size int) *recent {
	if size >= largeReview {
		return &c.recent[1]
	}
	return &c.recent[0]
}

// enterWait takes a permit to wait for a circuit, if there is one.
func (c *caller) enterWait() bool {
	if c.waiting.Add(1) > maxWaiting {
		c.waiting.Add(-1)
		return false
	}
	return true
}

// pause keeps extra attempts away until then.
func (c *caller) pause(until time.Time) {
	for {
		was := c.spared.Load()
		if was >= until.UnixNano() || c.spared.CompareAndSwap(was, until.UnixNano()) {
			return
		}
	}
}

// callers are the clusters that have called lately.
type callers struct {
	mu    sync.RWMutex
	known map[string]*caller
	swept time.Time
	burst burst // that they share
}

// of returns the caller that is a cluster, for a call that begins now.
func (cs *callers) of(cluster string, now time.Time) *caller {
	cs.mu.RLock()
	c, sweep := cs.known[cluster], now.Sub(cs.swept) >= callerIdle
	cs.mu.RUnlock()
	if c == nil || sweep {
		c = cs.make(cluster, now)
	}
	c.used.Store(now.UnixNano())
	return c
}

// make returns the caller that is a cluster, and forgets those that have not
// called for long: at most once in a while.
func (cs *callers) make(cluster string, now time.Time) *caller {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.known[cluster]
	if c == nil {
		c = &caller{}
		c.budget.burst = &cs.burst
	}
	if now.Sub(cs.swept) >= callerIdle {
		cs.swept = now
		for name, other := range cs.known {
			if now.UnixNano()-other.used.Load() >= int64(callerIdle) {
				delete(cs.known, name)
			}
		}
	}
	if cs.known == nil {
		cs.known = map[string]*caller{}
	}
	cs.known[cluster] = c
	return c
}
