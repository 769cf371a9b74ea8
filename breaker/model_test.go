// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"maps"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// model is a slow Breaker without jitter: it keeps every event, and counts
// anew each time that somebody asks.
type model struct {
	s        breaker.Settings // complete
	endpoint *modelCircuit
	events   []event // of connections
	clusters map[string]*modelCluster
	answered time.Time // a cluster without an open circuit
	swept    time.Time
}

// modelCluster is what one cluster has seen.
type modelCluster struct {
	circuit   *modelCircuit
	resources map[string]*modelCircuit
	events    []event
	forcedAt  []time.Time
	forcing   *modelTicket
	busy      bool
}

// event is one counted outcome.
type event struct {
	circuit *modelCircuit // of the resource; nil: it has none
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
	used     time.Time
}

type modelTicket struct {
	cluster, resource string
	path              [3]*modelCircuit // as they were; nil: there was none
	epochs            [3]int
	forced            [3]bool
	forcedAtAll       bool
	trial, reached    bool
}

// isOf reports whether the circuit is in the state that the attempt met, or in its
// first, if it is newer than the attempt.
func (t *modelTicket) isOf(place int, c *modelCircuit) bool {
	if t.path[place] == c {
		return t.epochs[place] == c.epoch
	}
	return c.epoch == 0
}

func newModel(s breaker.Settings, now time.Time) *model {
	return &model{s: s, endpoint: &modelCircuit{closedAt: now}, clusters: map[string]*modelCluster{}}
}

func (m *model) double(d time.Duration) time.Duration { return min(2*d, m.s.MaxOpenTime) }

func (m *model) open(c *modelCircuit, level int, at time.Time) {
	d := m.s.OpenTime
	for range level {
		d = m.double(d)
	}
	*c = modelCircuit{state: breaker.Open, epoch: c.epoch + 1, used: c.used, until: at.Add(d), level: level}
}

func (m *model) probe(c *modelCircuit, level int, patience time.Duration) {
	*c = modelCircuit{state: breaker.HalfOpen, epoch: c.epoch + 1, used: c.used, level: level, patience: patience, width: 1}
}

func (m *model) ramp(c *modelCircuit, patience time.Duration) {
	*c = modelCircuit{state: breaker.Ramping, epoch: c.epoch + 1, used: c.used, level: c.level, patience: patience, width: 1}
}

func (m *model) close(c *modelCircuit, now time.Time) {
	*c = modelCircuit{epoch: c.epoch + 1, used: c.used, closedAt: now}
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

// sweep forgets clusters, at most once in a Window.
func (m *model) sweep(now time.Time) {
	if len(m.clusters) == 0 || now.Sub(m.swept) < m.s.Window {
		return
	}
	m.swept = now
	for name, c := range m.clusters {
		if n := len(c.forcedAt); n > 0 && now.Sub(c.forcedAt[n-1]) <= m.s.Window {
			continue
		}
		_, bad := m.inWindow(c.events, c.circuit.closedAt, now, everything)
		well := c.isClosed() && bad == 0
		for _, own := range append([]*modelCircuit{c.circuit}, slices.Collect(maps.Values(c.resources))...) {
			m.tick(own, now)
			idle := now.Sub(own.used) > m.s.Window && (own.state == breaker.Closed || own.state == breaker.HalfOpen)
			c.busy = c.busy || !idle
		}
		if well || !c.busy {
			delete(m.clusters, name)
		}
		c.busy = false
	}
}

// path returns the circuits of an attempt, as of now.
func (m *model) path(cluster, resource string, now time.Time) (path [3]*modelCircuit) {
	m.sweep(now)
	path[0] = m.endpoint
	if c := m.clusters[cluster]; c != nil {
		path[1], path[2] = c.circuit, c.resources[resource]
	}
	for _, c := range path {
		if c != nil {
			m.tick(c, now)
		}
	}
	return path
}

func (m *model) stateOf(cluster, resource string, now time.Time) breaker.State {
	for _, c := range m.path(cluster, resource, now) {
		if c != nil && c.state != breaker.Closed {
			return c.state
		}
	}
	return breaker.Closed
}

// cluster is what is known of one.
func (m *model) cluster(name string, now time.Time) *modelCluster {
	if m.clusters[name] == nil {
		m.clusters[name] = &modelCluster{circuit: &modelCircuit{closedAt: now, used: now}, resources: map[string]*modelCircuit{}}
	}
	return m.clusters[name]
}

// hasRoom reports whether the circuit has a place.
func (c *modelCircuit) hasRoom() bool {
	return c.state == breaker.Closed || c.state != breaker.Open && len(c.starts)-c.ended < c.width
}

func (m *model) allow(cluster, resource string, now time.Time, force bool) (*modelTicket, bool) {
	t := &modelTicket{cluster: cluster, resource: resource, path: m.path(cluster, resource, now)}
	t.trial = m.endpoint.state != breaker.Closed
	for i, c := range t.path {
		t.forced[i] = c != nil && !c.hasRoom()
		t.forcedAtAll = t.forcedAtAll || t.forced[i]
	}
	for i, c := range t.path {
		if t.forced[i] {
			break
		}
		if c != nil {
			c.used = now
		}
	}
	if t.forcedAtAll && !(force && m.mayForce(t, now)) {
		return t, false
	}
	for i, c := range t.path {
		if c == nil {
			continue
		}
		t.epochs[i] = c.epoch
		if !t.forced[i] {
			c.used = now
		}
		if c.state != breaker.Closed && !t.forced[i] {
			c.starts = append(c.starts, now)
		}
	}
	return t, true
}

func (m *model) mayForce(t *modelTicket, now time.Time) bool {
	c := m.cluster(t.cluster, now)
	if n := len(c.forcedAt); n > 0 {
		since := now.Sub(c.forcedAt[n-1])
		if since < m.s.ForcedInterval || c.forcing != nil && since < m.s.ProbeTimeout {
			return false
		}
	}
	c.forcedAt = append(c.forcedAt, now)
	c.forcing = t
	t.path = m.path(t.cluster, t.resource, now) // there may be a circuit more, closed
	return true
}

// reached is the end of an attempt as far as the Endpoint is concerned.
func (m *model) reached(t *modelTicket, now time.Time) {
	m.sweep(now)
	m.tick(m.endpoint, now)
	if !t.trial || t.reached {
		return
	}
	t.reached = true
	if t.epochs[0] == m.endpoint.epoch {
		m.end(m.endpoint, t.forced[0], breaker.Success, now)
	}
}

func (m *model) done(t *modelTicket, r breaker.Result, now time.Time) {
	m.sweep(now)
	m.tick(m.endpoint, now)
	if c := m.clusters[t.cluster]; c != nil && c.forcing == t {
		c.forcing = nil
	}
	if !t.reached {
		if t.epochs[0] != m.endpoint.epoch {
			return
		}
		if m.connection(t, r, now) {
			return
		}
	}
	if r == breaker.Failure {
		m.cluster(t.cluster, now)
	}
	c := m.clusters[t.cluster]
	if c != nil {
		m.answer(c, t, r, now)
	}
	if r == breaker.Success && (c == nil || c.isClosed()) {
		m.answered = now
	}
}

// connection judges what an attempt says about connections, and reports whether
// the Endpoint has opened over it.
func (m *model) connection(t *modelTicket, r breaker.Result, now time.Time) bool {
	if m.endpoint.state != breaker.Closed {
		if r == breaker.Failure {
			r = breaker.Success
		}
		m.end(m.endpoint, t.forced[0], r, now)
		return false
	}
	if r != breaker.Excluded {
		m.events = append(m.events, event{at: now, result: r})
	}
	n, _ := m.inWindow(m.events, m.endpoint.closedAt, now, everything)
	bad, _ := m.inWindow(m.events, m.endpoint.closedAt, now, func(e event) bool { return e.result == breaker.ConnectFailure })
	if r != breaker.ConnectFailure || !m.unreachable(now) && !m.fails(n, bad, m.s.MinRequests) {
		return false
	}
	m.open(m.endpoint, 0, now)
	m.events, m.clusters = nil, map[string]*modelCluster{}
	return true
}

// answer judges what an attempt says to its cluster.
func (m *model) answer(c *modelCluster, t *modelTicket, r breaker.Result, now time.Time) {
	enough := m.enough(c, now, r)
	if r == breaker.ConnectFailure {
		r = breaker.Excluded
	}
	m.tick(c.circuit, now)
	if !t.isOf(1, c.circuit) {
		return
	}
	c.circuit.used = now
	if c.circuit.state != breaker.Closed {
		if m.end(c.circuit, t.forced[1], r, now); c.circuit.state != breaker.Closed {
			c.resources, c.events = map[string]*modelCircuit{}, nil
			return
		}
		c.events = nil // closed just now, by a success
		c.events = append(c.events, event{circuit: elsewhere, at: now, result: r})
		return
	}
	own := c.resources[t.resource]
	if own == nil && r == breaker.Failure {
		own = &modelCircuit{closedAt: now, used: now}
		c.resources[t.resource] = own
	}
	mine := own != nil
	if mine {
		m.tick(own, now)
		defer func() { own.used = now }()
		mine = t.isOf(2, own)
	}
	m.count(c, own, mine, r, now)
	n, bad := m.inWindow(c.events, c.circuit.closedAt, now, everything)
	if r == breaker.Failure && m.fails(n, bad, enough) && !m.confined(c, now) {
		m.open(c.circuit, 0, now)
		c.resources, c.events = map[string]*modelCircuit{}, nil
		return
	}
	switch {
	case !mine:
	case own.state != breaker.Closed:
		if m.end(own, t.forced[2], r, now); own.state == breaker.Closed {
			own.closedAt = now
		}
	case r == breaker.Failure:
		if n, bad := m.inWindow(c.events, own.closedAt, now, func(e event) bool { return e.circuit == own }); m.fails(n, bad, enough) {
			m.open(own, 0, now)
			c.forget(own)
		}
	}
}

func (m *model) enough(c *modelCluster, now time.Time, r breaker.Result) int {
	others := 0
	for _, other := range m.clusters {
		if other != c && !other.isClosed() {
			others++
		}
	}
	if r == breaker.Failure && others >= 2 && now.Sub(m.answered) >= m.s.Window {
		return 1
	}
	return m.s.MinRequests
}

func (c *modelCluster) isClosed() bool {
	all := c.circuit.state == breaker.Closed
	for _, own := range c.resources {
		all = all && own.state == breaker.Closed
	}
	return all
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
	}
}

// elsewhere marks what counts for the cluster but for no resource's circuit: an
// attempt from before it opened, or while it is open.
var elsewhere = &modelCircuit{}

func (m *model) count(c *modelCluster, own *modelCircuit, mine bool, r breaker.Result, now time.Time) {
	if r == breaker.Excluded {
		return
	}
	if own != nil && (!mine || own.state != breaker.Closed) {
		own = elsewhere
	}
	c.events = append(c.events, event{circuit: own, at: now, result: r})
}

// forget keeps the events of a resource for the cluster alone.
func (c *modelCluster) forget(own *modelCircuit) {
	for i := range c.events {
		if c.events[i].circuit == own {
			c.events[i].circuit = elsewhere
		}
	}
}

func everything(event) bool { return true }

// inWindow counts the events in the tenths of a window that begins at start.
func (m *model) inWindow(events []event, start, now time.Time, of func(event) bool) (n, bad int) {
	tenth := m.s.Window / 10
	for _, e := range events {
		if !of(e) || e.at.Before(start) || now.Sub(start)/tenth-e.at.Sub(start)/tenth >= 10 {
			continue
		}
		n++
		if e.result != breaker.Success {
			bad++
		}
	}
	return n, bad
}

func (m *model) fails(n, bad, enough int) bool {
	return n >= enough && m.ratio(n, bad)
}

func (m *model) ratio(n, bad int) bool {
	return bad > 0 && float64(bad)/float64(n) >= m.s.FailureRatio
}

// unreachable looks back for connection failures in a row.
func (m *model) unreachable(now time.Time) bool {
	row, broken := 0, false
	for i := len(m.events) - 1; i >= 0; i-- {
		e := m.events[i]
		if e.result == breaker.Success && now.Sub(e.at) < 100*time.Millisecond {
			return false
		}
		broken = broken || e.result == breaker.Success
		if !broken && e.result == breaker.ConnectFailure {
			row++
		}
	}
	return row >= m.s.ConnectFailures
}

// confined leaves out the open resources, or else the worst, and looks at the rest.
func (m *model) confined(c *modelCluster, now time.Time) bool {
	n, bad := m.inWindow(c.events, c.circuit.closedAt, now, func(e event) bool { return e.circuit == nil })
	worstN, worstBad, anyOpen := 0, 0, false
	for _, own := range c.resources {
		m.tick(own, now)
		if own.state != breaker.Closed {
			anyOpen = true
			continue
		}
		cn, cbad := m.inWindow(c.events, own.closedAt, now, func(e event) bool { return e.circuit == own })
		n, bad = n+cn, bad+cbad
		if cbad > worstBad || cbad == worstBad && cn < worstN {
			worstN, worstBad = cn, cbad
		}
	}
	if !anyOpen {
		n, bad = n-worstN, bad-worstBad
	}
	return !m.ratio(n, bad)
}
