// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// circuit is one state machine: that of the Endpoint or of one resource.
type circuit struct {
	circuitState
	resource string    // "" for the Endpoint
	since    time.Time // of its State
	// generation counts the states, so that an attempt that an earlier one
	// allowed is known by its number and has no effect on a later one.
	generation uint64
	used       time.Time // when an attempt last began or ended
	changes    *changes
}

func newCircuit(s *Settings, resource string, now time.Time, c *changes) *circuit {
	return &circuit{circuitState: newClosed(s), resource: resource, since: now, used: now, changes: c}
}

// advance brings the circuit up to now.
func (c *circuit) advance(now time.Time) {
	for {
		next, at := c.tick(now)
		if next == nil {
			return
		}
		c.enter(next, at)
	}
}

// enter makes the transition.
func (c *circuit) enter(next circuitState, at time.Time) {
	from, to := c.state(), next.state()
	c.circuitState = next
	c.generation++
	if from != to {
		c.since = at
		c.changes.add(change{resource: c.resource, from: from, to: to})
	}
}

// end hands an outcome to the state that allowed the attempt, if it is still
// the current one.
func (c *circuit) end(now time.Time, p permit, r Result) {
	c.advance(now)
	c.used = now
	if p.generation != c.generation {
		return
	}
	end := c.done
	if p.forced {
		end = c.forcedDone
	}
	if next := end(now, r); next != nil {
		c.enter(next, now)
	}
}

// permit is the leave of one circuit to make one attempt.
type permit struct {
	generation uint64
	forced     bool // the circuit itself would have refused
}

// ask asks for leave, as of an advanced circuit.
func (c *circuit) ask(now time.Time) (permit, bool) {
	if !c.allow(now) {
		return permit{}, false
	}
	c.used = now
	return permit{generation: c.generation}, true
}

// force takes leave.
func (c *circuit) force(now time.Time) permit {
	if p, ok := c.ask(now); ok {
		return p
	}
	return permit{generation: c.generation, forced: true}
}
