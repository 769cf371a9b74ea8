// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

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

	cluster, resource string // as in Change
}

func (b *Breaker) newCircuit(cluster, resource string, now time.Time) *circuit {
	return &circuit{circuitState: newClosed(&b.settings, now), since: now, used: now, breaker: b, cluster: cluster, resource: resource}
}

// advance brings the circuit up to now.
func (c *circuit) advance(now time.Time) {
	for {
		next, at := c.tick(now)
		if next == nil {
			return
		}
		c.enter(next, at, true)
	}
}

// enter makes the transition; byTime: time alone brings it about.
func (c *circuit) enter(next circuitState, at time.Time, byTime bool) {
	c.breaker.note(c, next.state(), at, c.why(next.state(), byTime))
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
func (c *circuit) end(now time.Time, t *Ticket, place int, r Result, by standard) {
	c.advance(now)
	c.used = now
	if t.number < c.began {
		return
	}
	end := c.done
	if t.refused[place] {
		end = c.forcedDone
	}
	if next := end(now, r, by); next != nil {
		c.enter(next, now, false)
	}
}

// isIdle reports whether nobody has asked for a Window, and the next attempt would
// be let through.
func (c *circuit) isIdle(now time.Time) bool {
	c.advance(now)
	return now.Sub(c.used) > c.breaker.settings.Window && (c.state() == Closed || c.state() == HalfOpen)
}

// window counts the outcomes of the last Settings.Window, each when it is known, in a
// ring of buckets.
type window struct {
	began  time.Time
	period time.Duration // of a bucket
	age    int64         // of the newest bucket, in periods
	ring   [buckets]tally
	sum    tally
}

// newWindow returns an empty window that begins now.
func newWindow(s *Settings, now time.Time) *window {
	return &window{began: now, period: max(s.Window/buckets, 1)}
}

// record counts one outcome.
func (w *window) record(now time.Time, failure bool) {
	w.roll(now)
	one := tally{outcomes: 1}
	if failure {
		one.failures = 1
	}
	newest := &w.ring[w.age%buckets]
	*newest, w.sum = newest.plus(one), w.sum.plus(one)
}

// tally returns the counts as of now.
func (w *window) tally(now time.Time) tally {
	w.roll(now)
	return w.sum
}

// roll lets the buckets go that are too old.
func (w *window) roll(now time.Time) {
	age := int64(now.Sub(w.began) / w.period)
	for w.age = max(w.age, age-buckets); w.age < age; {
		w.age++
		oldest := &w.ring[w.age%buckets]
		*oldest, w.sum = tally{}, w.sum.minus(*oldest)
	}
}

// tally is a number of outcomes and how many of them were failures.
type tally struct{ outcomes, failures int }

// bad reports whether the share of failures is one that opens.
func (t tally) bad(s *Settings) bool {
	return t.failures > 0 && float64(t.failures) >= s.FailureRatio*float64(t.outcomes)
}

// worse orders by failures, then by their share.
func (t tally) worse(than tally) bool {
	if t.failures != than.failures {
		return t.failures > than.failures
	}
	return t.outcomes < than.outcomes
}

func (t tally) plus(o tally) tally {
	return tally{t.outcomes + o.outcomes, t.failures + o.failures}
}

func (t tally) minus(o tally) tally {
	return tally{t.outcomes - o.outcomes, t.failures - o.failures}
}

// standard is what opens a closed circuit by the ratio of its failures.
type standard struct {
	outcomes int  // how many it takes
	confined bool // the failures are the affair of single resources: they do not
}

// opens reports whether the outcomes do.
func (s standard) opens(t tally, settings *Settings) bool {
	return !s.confined && t.outcomes >= s.outcomes && t.bad(settings)
}
