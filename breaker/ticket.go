// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// Ticket is the leave to make one attempt.
type Ticket struct {
	breaker  *Breaker
	endpoint permit
	circuit  *circuit // of the resource; nil if the Endpoint was not closed
	resource permit
	forced   uint64 // number of a forced attempt, 0 for any other
}

// Done ends the attempt. It has no effect on a circuit that has changed its
// state since, or has given the attempt up.
func (t Ticket) Done(r Result) {
	now := t.breaker.lock()
	defer t.breaker.unlock()
	t.breaker.end(now, t, r)
}

// end hands the outcome to the circuits. The Endpoint comes first: if it opens,
// its resources are done with.
func (b *Breaker) end(now time.Time, t Ticket, r Result) {
	if t.forced > 0 {
		b.forced.leave(t.forced)
	}
	if t.endpoint.generation != b.endpoint.generation {
		return
	}
	if t.circuit == nil {
		b.endpoint.end(now, t.endpoint, r)
		return
	}
	b.judge(now, t.circuit, r)
	b.endpoint.end(now, t.endpoint, r)
	if b.endpoint.state() != Closed {
		b.resources.reset(now)
		return
	}
	if r == ConnectFailure {
		r = Excluded // it says nothing about the resource
	}
	t.circuit.end(now, t.resource, r)
}

// judge tells the Endpoint's window, before a failure is counted, whether it is
// only that of a resource.
func (b *Breaker) judge(now time.Time, c *circuit, r Result) {
	endpoint, ok := b.endpoint.circuitState.(*closed)
	if !ok {
		return
	}
	switch r {
	case Failure:
		endpoint.window.confined = b.resources.confined(now, c)
	case ConnectFailure:
		b.resources.connections.record(r)
		endpoint.window.confined = b.resources.confined(now, nil)
	}
}
