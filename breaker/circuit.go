// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"math"
	"time"
)

// never is more outcomes than a window can hold.
const never = math.MaxInt

// circuit is one state machine: that of the Endpoint, of a cluster or of a
// resource of one.
type circuit struct {
	circuitState
	since time.Time // of its State
	// began is the number of the state: an attempt with a lower one was allowed by
	// an earlier state, and has no effect. A circuit that is new counts what began
	// before it.
	began   uint64
	used    time.Time // when an attempt last began or ended
	breaker *Breaker
}

func (b *Breaker) newCircuit(now time.Time) *circuit {
	return &circuit{circuitState: newClosed(&b.settings), since: now, used: now, breaker: b}
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
	if next.state() != c.state() {
		c.since = at
	}
	c.breaker.number++
	c.circuitState, c.began = next, c.breaker.number
}

// ask asks an advanced circuit for leave to make one attempt.
func (c *circuit) ask(now time.Time) bool {
	if !c.allow(now) {
		return false
	}
	c.used = now
	return true
}

// end hands an outcome to the state that allowed the attempt, or refused it at
// this place of its way and was passed over, if it is still the current one.
func (c *circuit) end(now time.Time, t *Ticket, place int, r Result, enough int) {
	c.advance(now)
	c.used = now
	if t.number < c.began {
		return
	}
	end := c.done
	if t.refused[place] {
		end = c.forcedDone
	}
	if next := end(now, r, enough); next != nil {
		c.enter(next, now)
	}
}

// isIdle reports whether nobody has asked for a Window, and the next attempt would
// be let through.
func (c *circuit) isIdle(now time.Time) bool {
	c.advance(now)
	return now.Sub(c.used) > c.breaker.settings.Window && (c.state() == Closed || c.state() == HalfOpen)
}
