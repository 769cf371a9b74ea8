// SPDX-License-Identifier: Apache-2.0

// Package breaker keeps the health of one Endpoint: whether an attempt may be
// made, judged by how earlier ones ended. It is a state machine without
// goroutines and without I/O; time is time.Now.
//
// An Endpoint has one circuit for itself and one for each resource. Failures on
// one resource, while others are well, open the circuit of that resource alone.
package breaker

import (
	"sync"
	"time"
)

// Breaker is the health of one Endpoint. It is safe for concurrent use.
type Breaker struct {
	settings Settings

	mu        sync.Mutex
	endpoint  *circuit
	resources *resources // asked while the Endpoint is closed, else empty
	forced    gate
	changes   changes
}

// New returns a closed Breaker.
func New(s Settings) *Breaker {
	b := &Breaker{settings: s.withDefaults()}
	b.forced.settings = &b.settings
	b.endpoint = newCircuit(&b.settings, "", time.Now(), &b.changes)
	b.resources = newResources(&b.settings, &b.changes)
	return b
}

// Allow asks for leave to make one attempt about a resource, such as
// "apps/deployments". If it is given, the Ticket must be ended exactly once.
func (b *Breaker) Allow(resource string) (Ticket, bool) {
	now := b.lock()
	defer b.unlock()
	return b.ask(resource, now)
}

// AllowForced is Allow for a caller to whom every Endpoint has said no. It gives
// leave where Allow would; otherwise to one attempt at a time, at most one in
// each Settings.ForcedInterval, so that nothing is refused for ever. If a forced
// attempt succeeds, the ramp begins at once; if it fails, nothing changes.
func (b *Breaker) AllowForced(resource string) (Ticket, bool) {
	now := b.lock()
	defer b.unlock()
	if t, ok := b.ask(resource, now); ok {
		return t, true
	}
	number, ok := b.forced.enter(now)
	if !ok {
		return Ticket{}, false
	}
	t := Ticket{breaker: b, endpoint: b.endpoint.force(now), forced: number}
	if b.endpoint.state() == Closed {
		t.circuit = b.resources.of(resource, now)
		t.resource = t.circuit.force(now)
	}
	return t, true
}

// ask asks the Endpoint's circuit, and while that is closed the resource's.
func (b *Breaker) ask(resource string, now time.Time) (Ticket, bool) {
	t := Ticket{breaker: b}
	var ok bool
	if t.endpoint, ok = b.endpoint.ask(now); !ok || b.endpoint.state() != Closed {
		return t, ok
	}
	t.circuit = b.resources.of(resource, now)
	t.circuit.advance(now)
	t.resource, ok = t.circuit.ask(now)
	return t, ok
}

// lock takes the lock and brings the Endpoint's circuit up to the time that it
// returns.
func (b *Breaker) lock() time.Time {
	b.mu.Lock()
	now := time.Now()
	b.endpoint.advance(now)
	return now
}

// unlock releases the lock and tells what has changed.
func (b *Breaker) unlock() {
	untold := b.changes.take()
	b.mu.Unlock()
	if b.settings.OnChange == nil {
		return
	}
	for _, c := range untold {
		b.settings.OnChange(c.resource, c.from, c.to)
	}
}
