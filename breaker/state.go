// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// State of a circuit.
type State uint8

const (
	// Closed lets every attempt through and counts how they end.
	Closed State = iota
	// Open lets none through until its time is over.
	Open
	// HalfOpen lets one attempt through at a time, the probe.
	HalfOpen
	// Ramping lets a growing number through at a time, after a good probe.
	Ramping
)

// String returns the name in lower case.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "ramping"
}

// circuitState is one state of a circuit, with all transitions that leave it:
//
//	closed --too many failures--> open --time--> halfOpen --success--> ramping --wide enough--> closed
//	halfOpen --failure--> open (for twice as long)
//	halfOpen --probe given up--> halfOpen (more patient)
//	ramping --failure, or stuck--> open
//	open, halfOpen --forced attempt succeeds--> ramping
type circuitState interface {
	state() State
	// tick returns the state that follows by time alone and since when it has;
	// nil if none does.
	tick(now time.Time) (circuitState, time.Time)
	// allow reports whether one more attempt may go, and counts it as under way.
	allow(now time.Time) bool
	// done ends an attempt that this very state allowed and returns the state
	// that follows; nil if none does.
	done(now time.Time, r Result, by standard) circuitState
	// forcedDone does the same for an attempt that it did not allow.
	forcedDone(now time.Time, r Result, by standard) circuitState
}

// closed counts outcomes.
type closed struct {
	settings *Settings
	window   *window
	// connectFailures in a row and the time of the last success, for the
	// Endpoint: the others are never given ConnectFailure.
	connectFailures int
	succeeded       time.Time
}

// calm is how long no attempt must have succeeded for a few connection failures
// in a row to mean anything. With 1,000 calls a second of which 5 % are reset,
// three in a row are common.
const calm = 100 * time.Millisecond

func newClosed(s *Settings, now time.Time) *closed {
	return &closed{settings: s, window: newWindow(s, now)}
}

func (*closed) state() State { return Closed }

func (*closed) tick(time.Time) (circuitState, time.Time) { return nil, time.Time{} }

func (*closed) allow(time.Time) bool { return true }

func (c *closed) done(now time.Time, r Result, by standard) circuitState {
	switch r {
	case Excluded:
		return nil
	case Success:
		c.connectFailures, c.succeeded = 0, now
	case ConnectFailure:
		c.connectFailures++
	}
	c.window.record(now, r.failed())
	if r.failed() && (by.opens(c.window.tally(now), c.settings) || c.unreachable(now)) {
		return newOpen(c.settings, 0, now)
	}
	return nil
}

func (c *closed) forcedDone(now time.Time, r Result, by standard) circuitState {
	return c.done(now, r, by)
}

// unreachable reports whether nothing gets through to the Endpoint any more.
func (c *closed) unreachable(now time.Time) bool {
	return c.connectFailures >= c.settings.ConnectFailures && now.Sub(c.succeeded) >= calm
}

// open refuses until its time is over.
type open struct {
	settings     *Settings
	failedProbes int
	until        time.Time
}

func newOpen(s *Settings, failedProbes int, now time.Time) *open {
	return &open{settings: s, failedProbes: failedProbes, until: now.Add(s.openTime(failedProbes))}
}

func (*open) state() State { return Open }

func (o *open) tick(now time.Time) (circuitState, time.Time) {
	if now.Before(o.until) {
		return nil, time.Time{}
	}
	return newHalfOpen(o.settings, o.failedProbes, o.settings.ProbeTimeout), o.until
}

func (*open) allow(time.Time) bool { return false }

// done is never reached: it allows nothing.
func (*open) done(time.Time, Result, standard) circuitState { return nil }

func (o *open) forcedDone(now time.Time, r Result, _ standard) circuitState {
	if r != Success && r != reached {
		return nil
	}
	return newRamping(o.settings, o.failedProbes, o.settings.ProbeTimeout, now)
}

// halfOpen has one probe under way at a time.
type halfOpen struct {
	settings     *Settings
	failedProbes int
	patience     time.Duration // with one probe
	probing      bool
	deadline     time.Time // of the probe
}

func newHalfOpen(s *Settings, failedProbes int, patience time.Duration) *halfOpen {
	return &halfOpen{settings: s, failedProbes: failedProbes, patience: patience}
}

func (*halfOpen) state() State { return HalfOpen }

// tick gives up a probe that takes too long. It has failed as far as the next
// time to be open is concerned.
func (h *halfOpen) tick(now time.Time) (circuitState, time.Time) {
	if !h.probing || now.Before(h.deadline) {
		return nil, time.Time{}
	}
	return newHalfOpen(h.settings, h.failedProbes+1, h.settings.doubled(h.patience)), h.deadline
}

func (h *halfOpen) allow(now time.Time) bool {
	if h.probing {
		return false
	}
	h.probing, h.deadline = true, now.Add(h.patience)
	return true
}

func (h *halfOpen) done(now time.Time, r Result, _ standard) circuitState {
	h.probing = false
	switch r {
	case Success, reached:
		return newRamping(h.settings, h.failedProbes, h.patience, now)
	case Failure, ConnectFailure:
		return newOpen(h.settings, h.failedProbes+1, now)
	}
	return nil
}

func (h *halfOpen) forcedDone(now time.Time, r Result, _ standard) circuitState {
	if r != Success && r != reached {
		return nil
	}
	return newRamping(h.settings, h.failedProbes, h.patience, now)
}

// ramping has at most width attempts under way at a time.
type ramping struct {
	settings     *Settings
	failedProbes int
	patience     time.Duration
	width        int
	underWay     int
	successes    int       // at this width
	deadline     time.Time // for one of those under way to end, if all places are taken
}

func newRamping(s *Settings, failedProbes int, patience time.Duration, now time.Time) circuitState {
	if s.RampWidth == 1 {
		return newClosed(s, now)
	}
	return &ramping{settings: s, failedProbes: failedProbes, patience: patience, width: 1}
}

func (*ramping) state() State { return Ramping }

// tick opens a ramp that is stuck: attempts that hang must not hold all places
// until their own deadlines.
func (p *ramping) tick(now time.Time) (circuitState, time.Time) {
	if p.underWay < p.width || now.Before(p.deadline) {
		return nil, time.Time{}
	}
	return newOpen(p.settings, p.failedProbes, p.deadline), p.deadline
}

func (p *ramping) allow(now time.Time) bool {
	if p.underWay >= p.width {
		return false
	}
	p.underWay++
	p.deadline = now.Add(p.patience)
	return true
}

func (p *ramping) done(now time.Time, r Result, _ standard) circuitState {
	p.underWay--
	switch r {
	case Success, reached:
		return p.widen(now)
	case Failure, ConnectFailure:
		return newOpen(p.settings, p.failedProbes, now)
	}
	return nil
}

func (p *ramping) forcedDone(now time.Time, r Result, _ standard) circuitState {
	if r.failed() {
		return newOpen(p.settings, p.failedProbes, now)
	}
	return nil
}

// widen counts a success; as many as the width double it.
func (p *ramping) widen(now time.Time) circuitState {
	p.successes++
	if p.successes < p.width {
		return nil
	}
	p.width, p.successes = 2*p.width, 0
	if p.width >= p.settings.RampWidth {
		return newClosed(p.settings, now)
	}
	return nil
}
