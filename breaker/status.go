// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// Status is a Breaker as of one moment, for people and metrics.
type Status struct {
	State State
	Since time.Time // of the State
	Until time.Time // when a probe may go, if Open
	// Requests are the counted outcomes in the window, Failures the bad ones
	// among them, of every resource together; 0 if not Closed.
	Requests, Failures int
	// Width is how many attempts may be under way at a time, if HalfOpen or
	// Ramping.
	Width int
	// Resources are those that have a circuit of their own that is not closed,
	// in order; only if Closed. Resources beyond the first 64 are "other".
	Resources []string
}

// State returns the state of the Endpoint as of now.
func (b *Breaker) State() State {
	b.lock()
	defer b.unlock()
	return b.endpoint.state()
}

// StateOf returns the state that an attempt about the resource would meet now.
func (b *Breaker) StateOf(resource string) State {
	now := b.lock()
	defer b.unlock()
	if s := b.endpoint.state(); s != Closed {
		return s
	}
	c := b.resources.find(resource)
	if c == nil {
		return Closed
	}
	c.advance(now)
	return c.state()
}

// Status returns everything worth showing, as of now.
func (b *Breaker) Status() Status {
	now := b.lock()
	defer b.unlock()
	status := Status{State: b.endpoint.state(), Since: b.endpoint.since}
	switch s := b.endpoint.circuitState.(type) {
	case *closed:
		t := s.window.tally()
		status.Requests, status.Failures = t.outcomes, t.failures
		status.Resources = b.resources.notClosed(now)
	case *open:
		status.Until = s.until
	case *halfOpen:
		status.Width = 1
	case *ramping:
		status.Width = s.width
	}
	return status
}
