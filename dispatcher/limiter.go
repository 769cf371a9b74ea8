// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"slices"
	"sync"
	"time"
)

// Limits bound the admissions for which webhooks are being called. Those beyond
// wait a moment and are then shed. Zero values mean the defaults.
type Limits struct {
	Admissions int   // of all clusters together; 1024
	PerCluster int   // of one cluster; half of Admissions
	Bytes      int64 // of their reviews; 512 MiB. Above half of it, large ones are shed
}

const (
	defaultAdmissions = 1024
	defaultBytes      = 512 << 20
	// queueWait is how long an admission waits for its turn. A queue smooths a
	// burst; one that is longer than that only makes everybody late.
	queueWait = 10 * time.Millisecond
	// queueLength is how many of one cluster wait.
	queueLength = 64
	// largeReview is what is shed first, in bytes.
	largeReview = 256 << 10
)

func (l Limits) withDefaults() Limits {
	if l.Admissions == 0 {
		l.Admissions = defaultAdmissions
	}
	if l.PerCluster == 0 {
		l.PerCluster = max(l.Admissions/2, 1)
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// limiter lets so many admissions call webhooks at a time, and shares them among
// the clusters: a place that becomes free goes to the waiting cluster that has
// the fewest (max-min fairness), so that one cluster's storm is that cluster's
// alone. It is safe for concurrent use.
type limiter struct {
	limits Limits

	mu      sync.Mutex
	active  int
	bytes   int64
	tenants map[string]*tenant // with a place or a waiter
	spare   *tenant            // that was forgotten last
}

// tenant is one cluster.
type tenant struct {
	name    string
	active  int
	waiting []*waiter // first come, first served
}

// waiter is one admission that waits for a place.
type waiter struct {
	size    int64
	granted chan struct{} // closed with a place
}

func newLimiter(l Limits) *limiter {
	return &limiter{limits: l.withDefaults(), tenants: map[string]*tenant{}}
}

// acquire waits for a place for a review of size bytes, for at most queueWait and
// not beyond a quarter of the time until the deadline. It reports false if there
// was none; otherwise release must be called once.
func (l *limiter) acquire(cluster string, size int64, deadline time.Time) bool {
	w, ok := l.enter(cluster, size)
	if w == nil {
		return ok
	}
	timer := time.NewTimer(min(queueWait, time.Until(deadline)/4))
	defer timer.Stop()
	select {
	case <-w.granted:
		return true
	case <-timer.C:
		return l.leave(cluster, w)
	}
}

// enter takes a place (ok), or one in the queue (w), or nothing.
func (l *limiter) enter(cluster string, size int64) (w *waiter, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[cluster]
	if t == nil {
		t = l.newTenant(cluster)
	}
	defer l.forget(t)
	switch {
	case l.tooLarge(size):
		return nil, false
	case l.active < l.limits.Admissions && t.active < l.limits.PerCluster:
		l.take(t, size)
		return nil, true
	case len(t.waiting) >= queueLength:
		return nil, false
	}
	w = &waiter{size: size, granted: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	return w, false
}

func (l *limiter) newTenant(cluster string) *tenant {
	t := l.spare
	if t == nil {
		t = new(tenant)
	}
	l.spare = nil
	t.name = cluster
	l.tenants[cluster] = t
	return t
}

// tooLarge is the ceiling in two steps: above half of it reviews that are large
// themselves have to go, above it all.
func (l *limiter) tooLarge(size int64) bool {
	after := l.bytes + size
	return after > l.limits.Bytes || size > largeReview && after > l.limits.Bytes/2
}

func (l *limiter) take(t *tenant, size int64) {
	l.active++
	l.bytes += size
	t.active++
}

// leave gives up waiting. It reports true if the place was granted meanwhile.
func (l *limiter) leave(cluster string, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[cluster]
	if t == nil {
		return true // granted, and it is the tenant's last
	}
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return true
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	l.forget(t)
	return false
}

// release gives a place back, to whoever waits.
func (l *limiter) release(cluster string, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[cluster]
	l.active--
	l.bytes -= size
	t.active--
	l.grant()
	l.forget(t)
}

// grant hands out free places.
func (l *limiter) grant() {
	for l.active < l.limits.Admissions {
		t := l.next()
		if t == nil {
			return
		}
		w := t.waiting[0]
		t.waiting = slices.Delete(t.waiting, 0, 1)
		l.take(t, w.size)
		close(w.granted)
	}
}

// next returns the tenant with a waiter that has the fewest places.
func (l *limiter) next() *tenant {
	var next *tenant
	for _, t := range l.tenants {
		if len(t.waiting) > 0 && t.active < l.limits.PerCluster && (next == nil || t.active < next.active) {
			next = t
		}
	}
	return next
}

// inFlight returns the places taken, by cluster.
func (l *limiter) inFlight() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := make(map[string]int, len(l.tenants))
	for name, t := range l.tenants {
		taken[name] = t.active
	}
	return taken
}

func (l *limiter) forget(t *tenant) {
	if t.active == 0 && len(t.waiting) == 0 {
		delete(l.tenants, t.name)
		l.spare = t
	}
}
