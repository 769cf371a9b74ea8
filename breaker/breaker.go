// SPDX-License-Identifier: Apache-2.0

// Package breaker keeps the health of one Endpoint: whether an attempt may be
// made, judged by how earlier ones ended. It is a state machine without
// goroutines and without I/O; time is time.Now.
//
// Three circuits decide about an attempt. That of the Endpoint is opened by
// connections alone, and for every cluster. What is answered, or not answered in
// time, depends on the review, which the cluster chose: it counts for the
// circuits of that cluster, one for itself and one for each resource.
package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Breaker is the health of one Endpoint. It is safe for concurrent use.
type Breaker struct {
	settings Settings

	mu       sync.Mutex
	number   uint64 // of states of circuits that have begun, and of forced attempts
	endpoint *circuit
	clusters map[string]*cluster // those with something to remember
	swept    time.Time
	// answered is when a cluster without an open circuit last had an answer.
	answered time.Time
	changes  []Change    // of which nobody has been told yet
	untold   atomic.Bool // there are some
}

// New returns a closed Breaker.
func New(s Settings) *Breaker {
	b := &Breaker{settings: s.withDefaults(), clusters: map[string]*cluster{}}
	b.endpoint = b.newCircuit("", "", time.Now())
	return b
}

// Allow asks for leave to make one attempt for a cluster about a resource, such
// as "apps/deployments". If it is given, the Ticket must be ended exactly once. Whoever
// asks calls Tell once it may notify others.
func (b *Breaker) Allow(cluster, resource string) (Ticket, bool) {
	now := b.lock()
	defer b.mu.Unlock()
	return b.ask(cluster, resource, now)
}

// AllowForced is Allow for a caller that every Endpoint has refused. It gives
// leave where Allow would; otherwise to one attempt of each cluster at a time, at
// most one in each Settings.ForcedInterval, so that no cluster is refused for
// ever, whatever the others do. If a forced attempt succeeds, the ramp begins at
// once; if it fails, nothing changes.
func (b *Breaker) AllowForced(cluster, resource string) (Ticket, bool) {
	now := b.lock()
	defer b.mu.Unlock()
	if t, ok := b.ask(cluster, resource, now); ok {
		return t, true
	}
	b.number++
	if !b.remember(cluster, now).forced.enter(now, b.number) {
		return Ticket{}, false
	}
	t := b.newTicket(cluster, resource)
	t.forced = b.number
	for i, c := range b.path(cluster, resource, now) {
		t.refused[i] = c != nil && !c.ask(now)
	}
	return t, true
}

// ask asks each circuit on the way of an attempt. What those before a refusal
// have given is given back.
func (b *Breaker) ask(cluster, resource string, now time.Time) (Ticket, bool) {
	path := b.path(cluster, resource, now)
	for i, c := range path {
		if c == nil || c.ask(now) {
			continue
		}
		for _, before := range path[:i] {
			if before != nil {
				before.done(now, Excluded, standard{})
			}
		}
		return Ticket{}, false
	}
	return b.newTicket(cluster, resource), true
}

// path returns the circuits that decide about an attempt, as of now: that of the
// Endpoint, of the cluster, of the resource. One without failures has none.
func (b *Breaker) path(cluster, resource string, now time.Time) (path [3]*circuit) {
	path[0] = b.endpoint
	if c := b.clusters[cluster]; c != nil {
		path[1], path[2] = c.circuit, c.find(resource)
	}
	for _, c := range path {
		if c != nil {
			c.advance(now)
		}
	}
	return path
}

// enough returns how many outcomes it takes to open a circuit of a cluster: one,
// where two other clusters have a circuit that is open, and nobody else has been
// answered for a Window. Then a first failure is one of many.
func (b *Breaker) enough(c *cluster, now time.Time, r Result) int {
	if r != Failure || now.Sub(b.answered) < b.settings.Window {
		return b.settings.MinRequests
	}
	others := 0
	for _, other := range b.clusters {
		if other != c && !other.isClosed() {
			others++
		}
		if others == 2 {
			return 1
		}
	}
	return b.settings.MinRequests
}

// remember returns what there is to remember of a cluster.
func (b *Breaker) remember(name string, now time.Time) *cluster {
	c := b.clusters[name]
	if c == nil {
		c = b.newCluster(name, now)
		b.clusters[name] = c
	}
	return c
}

// lock takes the lock, brings the Endpoint's circuit up to the time that it
// returns, and once in a Window forgets clusters.
func (b *Breaker) lock() time.Time {
	b.mu.Lock()
	now := time.Now()
	b.endpoint.advance(now)
	if len(b.clusters) > 0 && now.Sub(b.swept) >= b.settings.Window {
		b.swept = now
		for name, c := range b.clusters {
			if c.isForgettable(now) {
				c.forget(now)
				delete(b.clusters, name)
			}
		}
	}
	return now
}

// Ticket is the leave to make one attempt. The zero value is that of an attempt
// about which no Breaker was asked.
type Ticket struct {
	breaker           *Breaker
	cluster, resource string
	number            uint64  // of the newest state of any circuit
	forced            uint64  // number of a forced attempt, 0 for any other
	refused           [3]bool // circuits on its way that a forced attempt has passed
	trial             bool    // the Endpoint is not trusted yet
	reached           bool    // there was a connection
}

func (b *Breaker) newTicket(cluster, resource string) Ticket {
	return Ticket{breaker: b, cluster: cluster, resource: resource, number: b.number, trial: b.endpoint.state() != Closed}
}

// Reached notes that the attempt has a connection: all that the Endpoint's own
// circuit waits for, so that a review that takes long holds up nobody else's.
func (t *Ticket) Reached() {
	if !t.trial || t.reached {
		return
	}
	now := t.breaker.lock()
	defer t.breaker.unlock()
	t.reached = true
	t.breaker.endpoint.end(now, t, 0, reached, standard{})
}

// Done ends the attempt. It has no effect on a circuit that has changed its
// state since, or has given the attempt up. The Endpoint's circuit comes first: if it
// opens, connections explain what the clusters have seen.
func (t *Ticket) Done(r Result) {
	b := t.breaker
	if b == nil {
		return
	}
	now := b.lock()
	defer b.unlock()
	if c := b.clusters[t.cluster]; c != nil && t.forced > 0 {
		c.forced.leave(t.forced)
	}
	if !t.reached {
		if t.number < b.endpoint.began {
			return
		}
		was := b.endpoint.state()
		b.endpoint.end(now, t, 0, r.ofConnection(), standard{outcomes: b.settings.MinRequests})
		if was == Closed && b.endpoint.state() == Open {
			clear(b.clusters)
			return
		}
	}
	c := b.clusters[t.cluster]
	if c == nil && r == Failure {
		c = b.remember(t.cluster, now)
	}
	if c != nil {
		c.end(now, t, r, b.enough(c, now, r))
	}
	if r == Success && (c == nil || c.isClosed()) {
		b.answered = now
	}
}
