// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// Change is a change of the state of a circuit. A circuit ends without one where a
// wider circuit that was closed opens in its stead: those of all clusters when it is
// the Endpoint's own, those of a cluster's resources when it is the cluster's.
type Change struct {
	Cluster  string // whose circuit it is; empty: the Endpoint's own
	Resource string // empty: every resource; "other": those beyond the first 32
	From, To State
	At       time.Time // perhaps before anybody looked
	Why      string    // for people; the set is closed
}

// note keeps a change until somebody is told.
func (b *Breaker) note(c *circuit, to State, at time.Time, why string) {
	if b.settings.Changed != nil && c.state() != to {
		b.untold.Store(true)
		b.changes = append(b.changes, Change{Cluster: c.cluster, Resource: c.resource, From: c.state(), To: to, At: at, Why: why})
	}
}

// Tell notifies of what has changed since somebody was told. An attempt that ends, and
// Status, do the same.
func (b *Breaker) Tell() {
	if b.untold.Load() {
		b.mu.Lock()
		b.unlock()
	}
}

// unlock gives the lock back, and only then notifies of what has changed under it.
func (b *Breaker) unlock() {
	changes := b.changes
	b.changes = nil
	b.untold.Store(false)
	b.mu.Unlock()
	for _, c := range changes {
		b.settings.Changed(c)
	}
}

// why says what the transition of a circuit comes from; byTime: from time alone.
func (c *circuit) why(to State, byTime bool) string {
	switch from := c.state(); {
	case from == Closed && c.cluster == "":
		return "connections failed"
	case from == Closed:
		return "too many calls failed"
	case from == Open && byTime:
		return "the open time is over"
	case from == Open:
		return "a forced attempt succeeded"
	case from == HalfOpen && to == Open:
		return "the probe failed"
	case from == HalfOpen:
		return "the probe succeeded"
	case byTime:
		return "attempts hang"
	case to == Open:
		return "an attempt failed"
	}
	return "attempts succeed"
}

// forgotten is why a circuit is closed that is not remembered any more.
const forgotten = "no attempts for a while"
