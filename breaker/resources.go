// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"slices"
	"time"
)

// maxResources bounds how many resources have a circuit of their own. Further
// ones share that of otherResources, until one has not been used for a Window.
const (
	maxResources   = 64
	otherResources = "other"
)

// resources are the circuits of single resources, and what is known of
// connections, which belong to none.
type resources struct {
	settings    *Settings
	changes     *changes
	circuits    map[string]*circuit
	connections *window // only failures
}

func newResources(s *Settings, c *changes) *resources {
	rs := &resources{settings: s, changes: c}
	rs.reset(time.Time{})
	return rs
}

// reset forgets everything, as of when the Endpoint itself opens.
func (rs *resources) reset(now time.Time) {
	for _, c := range rs.circuits {
		c.enter(newClosed(rs.settings), now)
	}
	rs.circuits = map[string]*circuit{}
	rs.connections = newWindow(rs.settings)
	rs.connections.confined = true
}

// find returns the circuit that is responsible for the resource, nil if there
// is none yet.
func (rs *resources) find(resource string) *circuit {
	if c := rs.circuits[resource]; c != nil || len(rs.circuits) < maxResources {
		return c
	}
	return rs.circuits[otherResources]
}

// of returns the circuit that is responsible for the resource.
func (rs *resources) of(resource string, now time.Time) *circuit {
	if c := rs.circuits[resource]; c != nil {
		return c
	}
	if len(rs.circuits) >= maxResources && !rs.evict(now) {
		resource = otherResources
	}
	c := rs.circuits[resource]
	if c == nil {
		c = newCircuit(rs.settings, resource, now, rs.changes)
		rs.circuits[resource] = c
	}
	return c
}

// evict makes place for one more resource, in the stead of one that nobody asks
// about and that would let the next attempt through.
func (rs *resources) evict(now time.Time) bool {
	for resource, c := range rs.circuits {
		c.advance(now)
		idle := now.Sub(c.used) > rs.settings.Window
		if idle && (c.state() == Closed || c.state() == HalfOpen) {
			c.enter(newClosed(rs.settings), now) // attempts still under way count for nothing
			delete(rs.circuits, resource)
			return true
		}
	}
	return false
}

// confined reports whether failures are the affair of single resources: whether
// the Endpoint is well if they are left out. They are those already open, or
// else the one with the most failures, where the outcome at hand is one more
// for its own. Without any other outcome there is nothing to tell by.
func (rs *resources) confined(now time.Time, failing *circuit) bool {
	rest, worst, anyOpen := rs.connections.tally(), tally{}, false
	for _, c := range rs.circuits {
		c.advance(now)
		closed, ok := c.circuitState.(*closed)
		if !ok {
			anyOpen = true
			continue
		}
		t := closed.window.tally()
		if c == failing {
			t = t.plus(tally{outcomes: 1, failures: 1})
		}
		rest = rest.plus(t)
		if t.worse(worst) {
			worst = t
		}
	}
	if !anyOpen {
		rest = rest.minus(worst)
	}
	return rest.outcomes > 0 && !rest.bad(rs.settings)
}

// notClosed returns the names of the resources that are not closed, in order.
func (rs *resources) notClosed(now time.Time) []string {
	var names []string
	for resource, c := range rs.circuits {
		c.advance(now)
		if c.state() != Closed {
			names = append(names, resource)
		}
	}
	slices.Sort(names)
	return names
}
