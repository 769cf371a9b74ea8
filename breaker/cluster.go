// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"time"
)

// maxResources bounds how many resources of one cluster have a circuit of their
// own. Further ones share that of otherResources, until one has not been used
// for a Window. No cluster takes another's.
const (
	maxResources   = 32
	otherResources = "other"
)

// cluster is the health of an Endpoint as one cluster sees it. It begins with a
// failure, or with a forced attempt.
type cluster struct {
	breaker   *Breaker
	name      string
	circuit   *circuit
	resources map[string]*circuit // those that have failed
	elsewhere *window             // what came of attempts about other resources
	forced    gate
}

func (b *Breaker) newCluster(name string, now time.Time) *cluster {
	return &cluster{
		breaker: b, name: name, circuit: b.newCircuit(name, "", now), resources: map[string]*circuit{},
		elsewhere: newWindow(&b.settings, now), forced: gate{settings: &b.settings},
	}
}

// end hands an outcome to the circuits of the cluster and of the resource. The
// cluster comes first: if it opens, its resources are done with.
func (c *cluster) end(now time.Time, t *Ticket, r Result, enough int) {
	if r == ConnectFailure {
		r = Excluded // it says nothing about the review
	}
	c.circuit.advance(now)
	if t.number < c.circuit.began {
		return
	}
	resource := c.find(t.resource)
	if resource == nil && r == Failure && c.circuit.state() == Closed {
		resource = c.make(t.resource, now)
	}
	confined := r == Failure && c.confined(now, resource)
	c.circuit.end(now, t, 1, r, standard{outcomes: enough, confined: confined})
	switch {
	case c.circuit.state() != Closed:
		c.resources, c.elsewhere = map[string]*circuit{}, newWindow(&c.breaker.settings, now)
	case resource != nil:
		resource.end(now, t, 2, r, standard{outcomes: enough})
	case r == Success:
		c.elsewhere.record(now, false)
	}
}

// find returns the circuit that is responsible for the resource, nil if there
// is none yet.
func (c *cluster) find(resource string) *circuit {
	if own := c.resources[resource]; own != nil || len(c.resources) < maxResources {
		return own
	}
	return c.resources[otherResources]
}

// make returns a circuit that is responsible for the resource, which has none of
// its own.
func (c *cluster) make(resource string, now time.Time) *circuit {
	if len(c.resources) >= maxResources && !c.evict(now) {
		resource = otherResources
	}
	own := c.resources[resource]
	if own == nil {
		own = c.breaker.newCircuit(c.name, resource, now)
		c.resources[resource] = own
	}
	return own
}

// evict makes place for one more resource, in the stead of one that nobody asks
// about and that would let the next attempt through.
func (c *cluster) evict(now time.Time) bool {
	for resource, own := range c.resources {
		if own.isIdle(now) {
			c.breaker.note(own, Closed, now, forgotten)
			delete(c.resources, resource)
			return true
		}
	}
	return false
}

// confined reports whether failures are the affair of single resources: whether
// the cluster is well if they are left out, or nothing else is known. They are
// those already open, or else the one with the most failures, where the outcome
// at hand is one more for its own.
func (c *cluster) confined(now time.Time, failing *circuit) bool {
	rest, worst, anyOpen := c.elsewhere.tally(now), tally{}, false
	for _, own := range c.resources {
		own.advance(now)
		closed, ok := own.circuitState.(*closed)
		if !ok {
			anyOpen = true
			continue
		}
		t := closed.window.tally(now)
		if own == failing {
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
	return !rest.bad(&c.breaker.settings)
}

// isClosed reports whether every circuit is.
func (c *cluster) isClosed() bool {
	if c.circuit.state() != Closed {
		return false
	}
	for _, own := range c.resources {
		if own.state() != Closed {
			return false
		}
	}
	return true
}

// isForgettable reports whether the cluster would be treated no worse if it were
// not known: no failure counts any more, or nobody asks and the next attempt
// would be let through.
func (c *cluster) isForgettable(now time.Time) bool {
	if now.Sub(c.forced.last) <= max(c.breaker.settings.Window, c.forced.wait) {
		return false
	}
	closed, ok := c.circuit.circuitState.(*closed)
	return ok && c.isClosed() && closed.window.tally(now).failures == 0 || c.isIdle(now)
}

func (c *cluster) isIdle(now time.Time) bool {
	if !c.circuit.isIdle(now) {
		return false
	}
	for _, own := range c.resources {
		if !own.isIdle(now) {
			return false
		}
	}
	return true
}

// forget notes that no circuit of the cluster is open any more.
func (c *cluster) forget(now time.Time) {
	c.breaker.note(c.circuit, Closed, now, forgotten)
	for _, own := range c.resources {
		c.breaker.note(own, Closed, now, forgotten)
	}
}

// gate lets forced attempts of one cluster through: one at a time, given up
// after ProbeTimeout, and none before ForcedInterval has passed since the last.
type gate struct {
	settings *Settings
	number   uint64 // of the last one let through; 0: none
	busy     bool
	last     time.Time
	wait     time.Duration // after the last
}

// enter lets an attempt through, which has a number.
func (g *gate) enter(now time.Time, number uint64) bool {
	wait := g.wait
	if g.busy {
		wait = max(wait, g.settings.ProbeTimeout)
	}
	if g.number > 0 && now.Sub(g.last) < wait {
		return false
	}
	g.number, g.busy, g.last = number, true, now
	g.wait = g.settings.spread(g.settings.ForcedInterval, g.settings.ForcedInterval)
	return true
}

// leave ends an attempt. One that was given up has no effect.
func (g *gate) leave(number uint64) {
	if number == g.number {
		g.busy = false
	}
}
