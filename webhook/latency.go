// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// How a Target's latencies are kept: a window of histograms with one significant
// digit, a few kilobytes in all.
const (
	latencySlots    = 5
	latencySlot     = 2 * time.Second
	latencyHighest  = 60 * time.Second
	latencyDigits   = 1
	latencyWarm     = 20                     // attempts before the window says anything
	latencyRefresh  = 250 * time.Millisecond // between two looks at the quantiles
	hedgeQuantile   = 95
	hedgeFloor      = time.Millisecond
	hedgeOverMedian = 4 // cap of the delay: where every twentieth answer is slow, the quantile is slow too
)

// latency is how long the attempts at one Target took lately. It is safe for
// concurrent use.
type latency struct {
	mu        sync.Mutex
	window    *hdrhistogram.WindowedHistogram // once there is something to keep
	rotated   time.Time
	refreshed time.Time
	median    time.Duration // 0: not warm
	high      time.Duration // the quantile that a hedge waits for
}

// record counts an attempt that was answered, or was not in time: every one, or
// the quantile would be of the quick ones alone and fall ever lower.
func (l *latency) record(now time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	// A value out of range is the highest: it cannot fail then.
	_ = l.window.Current.RecordValue(min(max(took, 1), latencyHighest).Microseconds())
}

// quantiles returns the median and the delay of a hedge as of now; ok is false as
// long as too little is known.
func (l *latency) quantiles(now time.Time) (median, high time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window == nil {
		return 0, 0, false
	}
	l.turn(now)
	if now.Sub(l.refreshed) >= latencyRefresh {
		l.refresh(now)
	}
	return l.median, l.high, l.median > 0
}

// Latency is how long the attempts at a Target took in the last ten seconds, with
// one significant digit. All is zero where there was no attempt.
type Latency struct {
	Attempts      int64
	P50, P95, P99 time.Duration
}

// Latency returns the latencies as of now. It costs some microseconds, and is
// for people, not for the way of a call.
func (t *Target) Latency() Latency { return t.latency.summary(time.Now()) }

func (l *latency) summary(now time.Time) Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window == nil {
		return Latency{}
	}
	l.turn(now)
	all := l.window.Merge()
	at := func(quantile float64) time.Duration {
		return time.Duration(all.ValueAtQuantile(quantile)) * time.Microsecond
	}
	return Latency{Attempts: all.TotalCount(), P50: at(50), P95: at(95), P99: at(99)}
}

// turn makes the window and rotates it.
func (l *latency) turn(now time.Time) {
	if l.window == nil {
		l.window = hdrhistogram.NewWindowed(latencySlots, 1, latencyHighest.Microseconds(), latencyDigits)
		l.rotated = now
	}
	for turns := 0; now.Sub(l.rotated) >= latencySlot; turns++ {
		if turns == latencySlots { // all is empty
			l.rotated = now
			return
		}
		l.window.Rotate()
		l.rotated = l.rotated.Add(latencySlot)
	}
}

func (l *latency) refresh(now time.Time) {
	l.refreshed = now
	l.median, l.high = 0, 0
	all := l.window.Merge()
	if all.TotalCount() < latencyWarm {
		return
	}
	l.median = max(time.Duration(all.ValueAtQuantile(50))*time.Microsecond, 1)
	l.high = time.Duration(all.ValueAtQuantile(hedgeQuantile)) * time.Microsecond
}

// hedgeDelay returns how long a hedge waits for the attempt before it, in a call
// that may take left; ok is false where there is to be none.
func (l *latency) hedgeDelay(now time.Time, left time.Duration) (time.Duration, bool) {
	median, high, ok := l.quantiles(now)
	if !ok {
		return 0, false
	}
	return max(min(high, hedgeOverMedian*median, left/2), hedgeFloor), true
}
