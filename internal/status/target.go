// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

func (c *Collector) target(t *transport.Target) Target {
	stats := t.Stats()
	target := Target{
		ID:            targetID(t),
		URL:           t.URL(),
		Endpoints:     []Endpoint{},
		Attempts:      stats.Attempts,
		Retries:       stats.Retries,
		Hedges:        stats.Hedges,
		BudgetRefused: stats.BudgetRefused,
		Disagreements: stats.Disagreements,
		Misread:       stats.Misread,
		Reads:         webhook.Reads(t, time.Now()),
		Latency:       newLatency(t.Latency()),
		Samples:       c.latencies.of(t),
	}
	if err := t.Unresolved(); err != nil {
		target.Unresolved = err.Error()
	}
	for _, e := range t.Endpoints() {
		target.Endpoints = append(target.Endpoints, newEndpoint(e))
	}
	return target
}

// closedState is the state of a breaker that lets everything pass.
var closedState = breaker.Closed.String()

func newEndpoint(e *transport.Endpoint) Endpoint {
	h := e.Health()
	return Endpoint{
		Address:     e.Address().String(),
		State:       h.State.String(),
		Since:       h.Since.UTC(),
		Until:       h.Until.UTC(),
		Requests:    h.Requests,
		Failures:    h.Failures,
		Width:       h.Width,
		Circuits:    newCircuits(h.Circuits),
		OpenCount:   len(h.Circuits),
		Outstanding: e.Outstanding(),
	}
}

// shownCircuits bounds the circuits of single clusters in a Status.
const shownCircuits = 64

func newCircuits(all []breaker.CircuitStatus) []Circuit {
	list := []Circuit{}
	for _, c := range all[:min(len(all), shownCircuits)] {
		list = append(list, Circuit{Cluster: c.Cluster, Resource: c.Resource, State: c.State.String(), Until: c.Until.UTC()})
	}
	return list
}
