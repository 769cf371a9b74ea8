// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
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
		target.Unresolved = shown(err)
	} else if err := t.LookupError(); err != nil {
		target.LookupError = shown(err)
	}
	for _, e := range t.Endpoints() {
		target.Endpoints = append(target.Endpoints, newEndpoint(e))
	}
	return target
}

// maxError bounds the text of an error, in bytes: the names in a certificate are whatever
// its owner likes.
const maxError = 300

// shown is the text of an error as a Status has it.
func shown(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, err.Error())
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "..."
	}
	return text
}

// newLastError leaves out what a webhook wrote, which may quote an object.
func newLastError(t *transport.Trouble) *LastError {
	if t == nil {
		return nil
	}
	last := &LastError{Time: t.At.UTC(), Cause: string(hook.BadAnswer)}
	if failed, ok := errors.AsType[*hook.CallError](t.Err); ok {
		last.Cause = string(failed.Cause)
	}
	if last.Text = shown(t.Err); last.Cause == string(hook.BadAnswer) {
		last.Text = "its answer is not one to the review that it was sent; the log says more"
	}
	return last
}

func newEndpoint(e *transport.Endpoint) Endpoint {
	h := e.Health()
	return Endpoint{
		Address:     e.Address().String(),
		Condition:   e.Condition(h.State).String(),
		LastError:   newLastError(e.Trouble()),
		LastAnswer:  e.Answered().UTC(),
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
