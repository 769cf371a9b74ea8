// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

func (c *Collector) target(t *transport.Target) Target {
	stats := t.Stats()
	target := Target{
		ID:            targetID(t.Identity().String()),
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

// Every Target is sampled as often as its window of latencies is long.
const (
	sampleInterval = 10 * time.Second
	keptSamples    = 60 // ten minutes
)

// latencies are the samples of the Targets.
type latencies struct {
	mu      sync.Mutex
	samples map[*transport.Target]*ring[Sample]
}

// sample takes one sample of each Target and forgets those that have left.
func (l *latencies) sample(now time.Time, targets []*transport.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.samples
	l.samples = make(map[*transport.Target]*ring[Sample], len(targets))
	for _, t := range targets {
		samples := before[t]
		if samples == nil {
			samples = newRing[Sample](keptSamples)
		}
		latency := newLatency(t.Latency())
		samples.add(Sample{Time: now.UTC(), Attempts: latency.Attempts, P50: latency.P50, P99: latency.P99})
		l.samples[t] = samples
	}
}

// of returns the samples of a Target, oldest first.
func (l *latencies) of(t *transport.Target) []Sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	if samples := l.samples[t]; samples != nil {
		return samples.oldestFirst()
	}
	return []Sample{}
}

func newLatency(l transport.Latency) Latency {
	return Latency{Attempts: l.Attempts, P50: l.P50.Seconds(), P95: l.P95.Seconds(), P99: l.P99.Seconds()}
}
