// SPDX-License-Identifier: Apache-2.0

package breaker

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
	defer t.breaker.mu.Unlock()
	t.reached = true
	t.breaker.endpoint.end(now, t, 0, reached, never)
}

// Done ends the attempt. It has no effect on a circuit that has changed its
// state since, or has given the attempt up.
func (t *Ticket) Done(r Result) {
	if t.breaker == nil {
		return
	}
	now := t.breaker.lock()
	defer t.breaker.mu.Unlock()
	t.breaker.end(now, t, r)
}
