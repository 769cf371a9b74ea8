// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// model is a slow Breaker without jitter: it keeps every event, and counts
// anew each time that somebody asks.
type model struct {
	s         breaker.Settings // complete
	endpoint  *modelCircuit
	resources map[string]*modelCircuit
	events    []event // since the Endpoint closed
	forcedAt  []time.Time
	forcing   *modelTicket
}

// event is one counted outcome, kept once for the Endpoint and once for the
// resource or the connections.
type event struct {
	circuit *modelCircuit // nil: of connections
	at      time.Time
	result  breaker.Result
}

// modelCircuit is one circuit as plain facts.
type modelCircuit struct {
	state    breaker.State
	epoch    int       // grows whenever attempts under way are forgotten
	closedAt time.Time // its window begins here
	until    time.Time // open
	level    int       // failed probes
	patience time.Duration
	width    int
	starts   []time.Time // of attempts that count against the width
	ended    int
	good     int // at this width
}

type modelTicket struct {
	resource      string // "" if the Endpoint alone decides
	endpointEpoch int
	resourceEpoch int
	aboutResource bool
	forcedAtAll   bool
	endpointForce bool
	resourceForce bool
}

func newModel(s breaker.Settings, now time.Time) *model {
	return &model{s: s, endpoint: &modelCircuit{closedAt: now}, resources: map[string]*modelCircuit{}}
}

func (m *model) double(d time.Duration) time.Duration { return min(2*d, m.s.MaxOpenTime) }

func (m *model) open(c *modelCircuit, level int, at time.Time) {
	d := m.s.OpenTime
	for range level {
		d = m.double(d)
	}
	*c = modelCircuit{state: breaker.Open, epoch: c.epoch + 1, until: at.Add(d), level: level}
}

func (m *model) probe(c *modelCircuit, level int, patience time.Duration) {
	*c = modelCircuit{state: breaker.HalfOpen, epoch: c.epoch + 1, level: level, patience: patience, width: 1}
}

func (m *model) ramp(c *modelCircuit, patience time.Duration) {
	*c = modelCircuit{state: breaker.Ramping, epoch: c.epoch + 1, level: c.level, patience: patience, width: 1}
}

func (m *model) close(c *modelCircuit, now time.Time) {
	*c = modelCircuit{epoch: c.epoch + 1, closedAt: now}
}

// tick lets time have its effect.
func (m *model) tick(c *modelCircuit, now time.Time) {
	for {
		full := c.width > 0 && len(c.starts)-c.ended >= c.width
		var giveUp time.Time
		if full {
			giveUp = c.starts[len(c.starts)-1].Add(c.patience)
		}
		switch {
		case c.state == breaker.Open && !now.Before(c.until):
			m.probe(c, c.level, m.s.ProbeTimeout)
		case c.state == breaker.HalfOpen && full && !now.Before(giveUp):
			m.probe(c, c.level+1, m.double(c.patience))
		case c.state == breaker.Ramping && full && !now.Before(giveUp):
			m.open(c, c.level, giveUp)
		default:
			return
		}
	}
}

func (m *model) stateOf(resource string, now time.Time) breaker.State {
	if m.tick(m.endpoint, now); m.endpoint.state != breaker.Closed {
		return m.endpoint.state
	}
	c := m.resources[resource]
	if c == nil {
		return breaker.Closed
	}
	m.tick(c, now)
	return c.state
}

// admits reports whether the circuit has a place, and takes it.
func (c *modelCircuit) admits(now time.Time) bool {
	if c.state == breaker.Closed {
		return true
	}
	if c.state == breaker.Open || len(c.starts)-c.ended >= c.width {
		return false
	}
	c.starts = append(c.starts, now)
	return true
}

func (m *model) allow(resource string, now time.Time, force bool) (*modelTicket, bool) {
	m.tick(m.endpoint, now)
	t := &modelTicket{resource: resource, endpointEpoch: m.endpoint.epoch}
	if m.endpoint.state != breaker.Closed {
		if !m.endpoint.admits(now) {
			t.endpointForce = true
			return t, force && m.mayForce(t, now)
		}
		return t, true
	}
	c := m.resources[resource]
	if c == nil {
		c = &modelCircuit{closedAt: now}
		m.resources[resource] = c
	}
	m.tick(c, now)
	t.aboutResource, t.resourceEpoch = true, c.epoch
	if !c.admits(now) {
		t.resourceForce = true
		return t, force && m.mayForce(t, now)
	}
	return t, true
}

func (m *model) mayForce(t *modelTicket, now time.Time) bool {
	if n := len(m.forcedAt); n > 0 {
		since := now.Sub(m.forcedAt[n-1])
		if since < m.s.ForcedInterval || m.forcing != nil && since < m.s.ProbeTimeout {
			return false
		}
	}
	m.forcedAt = append(m.forcedAt, now)
	m.forcing, t.forcedAtAll = t, true
	return true
}

func (m *model) done(t *modelTicket, r breaker.Result, now time.Time) {
	m.tick(m.endpoint, now)
	if m.forcing == t {
		m.forcing = nil
	}
	if t.endpointEpoch != m.endpoint.epoch {
		return
	}
	if !t.aboutResource {
		m.end(m.endpoint, t.endpointForce, r, now)
		return
	}
	c := m.resources[t.resource]
	m.tick(c, now)
	mine := c.epoch == t.resourceEpoch
	m.count(c, mine, r, now)
	if m.endpointFails(c, r, now) {
		m.open(m.endpoint, 0, now)
		m.resources, m.events = map[string]*modelCircuit{}, nil
		return
	}
	switch {
	case !mine:
	case c.state != breaker.Closed:
		if r == breaker.ConnectFailure {
			r = breaker.Excluded
		}
		m.end(c, t.resourceForce, r, now)
	case r == breaker.Failure:
		if n, bad := m.inWindow(c.closedAt, now, func(e event) bool { return e.circuit == c }); m.fails(n, bad) {
			m.open(c, 0, now)
			m.forget(c)
		}
	}
}

// end is the end of an attempt while not closed.
func (m *model) end(c *modelCircuit, forced bool, r breaker.Result, now time.Time) {
	if !forced {
		c.ended++
	}
	failed := r == breaker.Failure || r == breaker.ConnectFailure
	switch {
	case c.state == breaker.Ramping && failed:
		m.open(c, c.level, now)
	case c.state == breaker.Ramping && r == breaker.Success && !forced:
		m.widen(c, now)
	case c.state == breaker.Open && r == breaker.Success:
		m.ramp(c, m.s.ProbeTimeout)
	case c.state == breaker.HalfOpen && r == breaker.Success:
		m.ramp(c, c.patience)
	case c.state == breaker.HalfOpen && failed && !forced:
		m.open(c, c.level+1, now)
	}
}

func (m *model) widen(c *modelCircuit, now time.Time) {
	if c.good++; c.good < c.width {
		return
	}
	c.good, c.width = 0, 2*c.width
	if c.width >= m.s.RampWidth {
		m.close(c, now)
		if c == m.endpoint {
			m.events = nil
		}
	}
}

// elsewhere marks what counts for the Endpoint but for no resource: an attempt
// from before its resource opened.
var elsewhere = &modelCircuit{}

func (m *model) count(c *modelCircuit, mine bool, r breaker.Result, now time.Time) {
	switch {
	case r == breaker.Excluded:
		return
	case r == breaker.ConnectFailure:
		c = nil
	case !mine || c.state != breaker.Closed:
		c = elsewhere
	}
	m.events = append(m.events, event{circuit: c, at: now, result: r})
}

// forget keeps the events of a resource for the Endpoint alone.
func (m *model) forget(c *modelCircuit) {
	for i := range m.events {
		if m.events[i].circuit == c {
			m.events[i].circuit = elsewhere
		}
	}
}

// inWindow counts the events in the tenths of a window that begins at start.
func (m *model) inWindow(start, now time.Time, of func(event) bool) (n, bad int) {
	tenth := m.s.Window / 10
	for _, e := range m.events {
		if !of(e) || now.Sub(start)/tenth-e.at.Sub(start)/tenth >= 10 {
			continue
		}
		n++
		if e.result != breaker.Success {
			bad++
		}
	}
	return n, bad
}

func (m *model) fails(n, bad int) bool {
	return n >= m.s.MinRequests && m.ratio(n, bad)
}

func (m *model) ratio(n, bad int) bool {
	return bad > 0 && float64(bad)/float64(n) >= m.s.FailureRatio
}

// endpointFails reports whether the last event opens the Endpoint.
func (m *model) endpointFails(c *modelCircuit, r breaker.Result, now time.Time) bool {
	if r != breaker.Failure && r != breaker.ConnectFailure {
		return false
	}
	if r == breaker.ConnectFailure && m.unreachable(now) {
		return true
	}
	n, bad := m.inWindow(m.endpoint.closedAt, now, func(event) bool { return true })
	return m.fails(n, bad) && !m.confined(now)
}

// unreachable looks back for connection failures in a row.
func (m *model) unreachable(now time.Time) bool {
	row, broken := 0, false
	for i := len(m.events) - 1; i >= 0; i-- {
		e := m.events[i]
		if e.result == breaker.Success && now.Sub(e.at) < 100*time.Millisecond {
			return false
		}
		broken = broken || e.result != breaker.ConnectFailure
		if !broken {
			row++
		}
	}
	return row >= m.s.ConnectFailures
}

// confined leaves out the open resources, or else the worst, and looks at the rest.
func (m *model) confined(now time.Time) bool {
	n, bad := m.inWindow(m.endpoint.closedAt, now, func(e event) bool { return e.circuit == nil })
	worstN, worstBad, anyOpen := 0, 0, false
	for _, c := range m.resources {
		m.tick(c, now)
		if c.state != breaker.Closed {
			anyOpen = true
			continue
		}
		cn, cbad := m.inWindow(c.closedAt, now, func(e event) bool { return e.circuit == c })
		n, bad = n+cn, bad+cbad
		if cbad > worstBad || cbad == worstBad && cn < worstN {
			worstN, worstBad = cn, cbad
		}
	}
	if !anyOpen {
		n, bad = n-worstN, bad-worstBad
	}
	return n > 0 && !m.ratio(n, bad)
}
