// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/transport"
)

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
