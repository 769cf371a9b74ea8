// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"cmp"
	"slices"
	"time"
)

// Status is a Breaker as of one moment, for people and metrics.
type Status struct {
	// State is that of the Endpoint's own circuit, which connections open for every
	// cluster.
	State State
	Since time.Time // of the State
	Until time.Time // when a probe may go, if Open
	// Requests are the counted outcomes in the window, Failures the bad ones
	// among them, of every cluster whose circuit is closed; 0 if not Closed.
	Requests, Failures int
	// Width is how many attempts may be under way at a time, if HalfOpen or
	// Ramping.
	Width int
	// Circuits are those of single clusters that are not closed, in order.
	Circuits []CircuitStatus
}

// State returns the state of the Endpoint's own circuit as of now.
func (b *Breaker) State() State {
	b.lock()
	defer b.mu.Unlock()
	return b.endpoint.state()
}

// StateOf returns the state of the first circuit that is not closed for an attempt
// of the cluster about the resource; Closed if there is none.
func (b *Breaker) StateOf(cluster, resource string) State {
	now := b.lock()
	defer b.mu.Unlock()
	for _, c := range b.path(cluster, resource, now) {
		if c != nil && c.state() != Closed {
			return c.state()
		}
	}
	return Closed
}

// Status returns everything worth showing, as of now.
func (b *Breaker) Status() Status {
	now := b.lock()
	defer b.unlock()
	status := Status{State: b.endpoint.state(), Since: b.endpoint.since, Circuits: b.notClosed(now)}
	switch s := b.endpoint.circuitState.(type) {
	case *closed:
		t := s.window.tally(now)
		status.Requests, status.Failures = t.outcomes, t.failures
		for _, c := range b.clusters {
			if own, ok := c.circuit.circuitState.(*closed); ok {
				status.Failures += own.window.tally(now).failures
			}
		}
	case *open:
		status.Until = s.until
	case *halfOpen:
		status.Width = 1
	case *ramping:
		status.Width = s.width
	}
	return status
}

// CircuitStatus is a circuit of one cluster that is not closed.
type CircuitStatus struct {
	Cluster  string
	Resource string // empty: every resource; "other": those beyond the first 32
	State    State
	Until    time.Time // when a probe may go, if Open
}

// notClosed returns the circuits that are not closed, in order.
func (b *Breaker) notClosed(now time.Time) []CircuitStatus {
	var list []CircuitStatus
	add := func(cluster, resource string, c *circuit) {
		c.advance(now)
		s := CircuitStatus{Cluster: cluster, Resource: resource, State: c.state()}
		if open, ok := c.circuitState.(*open); ok {
			s.Until = open.until
		}
		if s.State != Closed {
			list = append(list, s)
		}
	}
	for name, c := range b.clusters {
		add(name, "", c.circuit)
		for resource, own := range c.resources {
			add(name, resource, own)
		}
	}
	slices.SortFunc(list, func(x, y CircuitStatus) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Resource, y.Resource))
	})
	return list
}
