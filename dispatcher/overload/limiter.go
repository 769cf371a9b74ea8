// SPDX-License-Identifier: Apache-2.0

package overload

import (
	"container/heap"
	"math"
	"slices"
	"sync"
	"time"
)

// limiter gives out slots and bytes, and shares both among the clusters, so that
// one cluster's storm is that cluster's alone:
//
//   - A slot that becomes free goes to the waiting cluster that has the fewest
//     (max-min fairness), of equals to the one that was served longest ago.
//   - A cluster may take bytes as long as it then has no more than is left free. With
//     n clusters that want more than there is, each gets the n+1st part, and one part
//     stays free for a cluster that comes (dynamic thresholds, Choudhury and Hahne
//     1998). One that has none may take all that is free.
//
// No step looks at all clusters. It is safe for concurrent use.
type limiter struct {
	limits Limits
	queue  int // how many of one cluster may wait

	mu       sync.Mutex
	active   int
	bytes    int64
	tenants  map[string]*tenant // with a slot, a waiter or bytes
	spare    *tenant            // that was forgotten last
	turn     uint64             // of whom was served last
	bySlots  ranking            // of those with a waiter that may be served, by slots
	byDemand ranking            // of the same, by the free bytes that they need
}

// tenant is one cluster.
type tenant struct {
	limiter *limiter
	name    string
	active  int
	bytes   int64 // until the last reference to the Bodies is gone
	waiting []*waiter
	turn    uint64
	rank    [2]int // where it is in the rankings; -1: it is not
	done    func() // release, as a value that is made once
}

// waiter is one that waits for a slot.
type waiter struct {
	size    int64
	granted chan struct{} // closed with a slot
}

// largeReview is from how many bytes on a review is the first that has to go.
const largeReview = 256 << 10

func newLimiter(l Limits, queue int) *limiter {
	r := &limiter{limits: l.withDefaults(), queue: queue, tenants: map[string]*tenant{}}
	r.bySlots = ranking{number: 0, before: func(a, b *tenant) bool {
		return a.active < b.active || a.active == b.active && a.turn < b.turn
	}}
	r.byDemand = ranking{number: 1, before: func(a, b *tenant) bool {
		x, y := a.demand(a.waiting[0].size), b.demand(b.waiting[0].size)
		return x < y || x == y && a.turn < b.turn
	}}
	return r
}

// acquire waits for a slot, and for so many bytes. Only where there is none at once it
// asks how long to wait. It returns nil if there was none; otherwise the tenant's release
// must be called once, and its Freed with the bytes, if there are any.
func (l *limiter) acquire(cluster string, size int64, patience func() time.Duration) *tenant {
	t, w := l.enter(cluster, size)
	if w == nil {
		return t
	}
	timer := time.NewTimer(patience())
	defer timer.Stop()
	select {
	case <-w.granted:
		return t
	case <-timer.C:
	}
	if l.leave(t, w) {
		return t
	}
	return nil
}

// enter takes a slot and the bytes (no waiter), or a position in the queue, or
// nothing (neither).
func (l *limiter) enter(cluster string, size int64) (*tenant, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenant(cluster)
	defer l.forget(t)
	switch {
	case l.active < l.limits.Admissions && t.active < l.limits.PerCluster && l.fits(t, size):
		l.take(t, size)
		l.rerank(t)
		return t, nil
	case size > l.limits.Bytes || len(t.waiting) >= l.queue:
		return nil, nil
	}
	if len(t.waiting) == 0 {
		l.turn++
		t.turn = l.turn
	}
	w := &waiter{size: size, granted: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	l.rerank(t)
	return t, w
}

// tenant returns the tenant of that name.
func (l *limiter) tenant(cluster string) *tenant {
	if t := l.tenants[cluster]; t != nil {
		return t
	}
	t := l.spare
	if t == nil {
		t = new(tenant)
		t.done = t.release
	}
	l.spare = nil
	*t = tenant{limiter: l, name: cluster, waiting: t.waiting, rank: [2]int{-1, -1}, done: t.done}
	l.tenants[cluster] = t
	return t
}

// fits reports whether t may take size bytes more.
func (l *limiter) fits(t *tenant, size int64) bool {
	return t.demand(size) <= l.limits.Bytes-l.bytes
}

// demand is how many bytes must be free for t to get size of them: as many as it
// then has must be left; twice as many if it is large, so that large reviews go
// before small ones.
func (t *tenant) demand(size int64) int64 {
	switch {
	case size == 0:
		return math.MinInt64
	case t.bytes == 0:
		return size
	case size > largeReview:
		return size + 2*(t.bytes+size)
	}
	return size + t.bytes + size
}

func (l *limiter) take(t *tenant, size int64) {
	l.active++
	t.active++
	l.bytes += size
	t.bytes += size
}

// leave gives up waiting. It reports true if the slot was granted meanwhile.
func (l *limiter) leave(t *tenant, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return true
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	l.settle(t)
	return false
}

// release gives a slot back, to whoever waits.
func (t *tenant) release() {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	t.active--
	l.settle(t)
}

// Freed implements codec.Account: it gives bytes back.
func (t *tenant) Freed(bytes int) {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= int64(bytes)
	t.bytes -= int64(bytes)
	l.settle(t)
}

// hold takes bytes without a slot, now or not at all. It returns nil if they do not
// fit; the tenant's Freed must be called otherwise. With more they are for an
// admission that has a slot: that of a cluster that has no other takes what is free,
// or it could never end.
func (l *limiter) hold(cluster string, size int64, more bool) *tenant {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenant(cluster)
	defer l.forget(t)
	alone := more && t.active == 1 && size <= l.limits.Bytes-l.bytes
	if !alone && !l.fits(t, size) {
		return nil
	}
	l.bytes += size
	t.bytes += size
	l.rerank(t)
	return t
}

// settle follows a change of t that may serve waiters.
func (l *limiter) settle(t *tenant) {
	l.rerank(t)
	l.serve()
	l.forget(t)
}

// serve gives the slots that are free to those who wait.
func (l *limiter) serve() {
	for l.active < l.limits.Admissions {
		next := l.next()
		if next == nil {
			break
		}
		w := next.waiting[0]
		next.waiting = slices.Delete(next.waiting, 0, 1)
		l.turn++
		next.turn = l.turn
		l.take(next, w.size)
		l.rerank(next)
		close(w.granted)
	}
}

// next returns who is served next: who has the fewest slots, or, where that one
// needs more bytes than are free, who needs the fewest.
func (l *limiter) next() *tenant {
	for _, r := range []*ranking{&l.bySlots, &l.byDemand} {
		if len(r.list) > 0 && l.fits(r.list[0], r.list[0].waiting[0].size) {
			return r.list[0]
		}
	}
	return nil
}

// rerank follows a change of t in the rankings.
func (l *limiter) rerank(t *tenant) {
	ranked := len(t.waiting) > 0 && t.active < l.limits.PerCluster
	for _, r := range []*ranking{&l.bySlots, &l.byDemand} {
		switch at := t.rank[r.number]; {
		case ranked && at >= 0:
			heap.Fix(r, at)
		case ranked:
			heap.Push(r, t)
		case at >= 0:
			heap.Remove(r, at)
		}
	}
}

// usage returns what is taken.
func (l *limiter) usage() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := Usage{Admissions: make(map[string]int, len(l.tenants)), Bytes: l.bytes}
	for name, t := range l.tenants {
		if t.active > 0 {
			u.Admissions[name] = t.active
		}
	}
	return u
}

func (l *limiter) forget(t *tenant) {
	if t.active == 0 && t.bytes == 0 && len(t.waiting) == 0 && l.tenants[t.name] == t {
		delete(l.tenants, t.name)
		l.spare = t
	}
}
