// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// How a Target's latencies are kept for people: a window of histograms with one
// significant digit, a few kilobytes in all.
const (
	latencySlots   = 5
	latencySlot    = 2 * time.Second
	latencyWindow  = latencySlots * latencySlot
	latencyHighest = 60 * time.Second
	latencyDigits  = 1
)

// latency is how long the attempts at one Target took lately, of all clusters. It
// is safe for concurrent use.
type latency struct {
	mu      sync.Mutex
	window  *hdrhistogram.WindowedHistogram // once there is something to keep
	rotated time.Time
}

// record counts an attempt that was answered, or was not in time.
func (l *latency) record(now time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	// A value out of range is the highest: it cannot fail then.
	_ = l.window.Current.RecordValue(min(max(took, 1), latencyHighest).Microseconds())
}

// Latency is how long the attempts at a Target took in the last ten seconds, with
// one significant digit. All is zero where there was no attempt.
type Latency struct {
	Attempts      int64
	P50, P95, P99 time.Duration
}

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

// How the durations by which decisions are made are kept.
const (
	recentKept      = 64
	recentWarm      = 20                     // attempts before they say anything
	recentRefresh   = 250 * time.Millisecond // between two looks at the quantiles
	hedgeQuantile   = 95
	hedgeFloor      = time.Millisecond
	hedgeOverMedian = 4 // cap of the delay: where every twentieth answer is slow, the quantile is slow too
)

// recent are the durations of the last attempts of one cluster, with reviews of one
// class of sizes. It is safe for concurrent use.
type recent struct {
	mu        sync.Mutex
	kept      *[recentKept]duration // once there is something to keep
	next      int
	refreshed time.Time
	median    time.Duration // 0: not warm
	high      time.Duration // the quantile that a hedge waits for
}

type duration struct {
	at   time.Time
	took time.Duration
}

// record keeps an attempt that was answered, or was not in time: every one, or
// the quantile would be of the quick ones alone and fall ever lower.
func (r *recent) record(now time.Time, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = new([recentKept]duration)
	}
	r.kept[r.next] = duration{now, max(took, 1)}
	r.next = (r.next + 1) % recentKept
}

// quantiles returns the median and the delay of a hedge as of now; ok is false as
// long as too little is known.
func (r *recent) quantiles(now time.Time) (median, high time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept != nil && now.Sub(r.refreshed) >= recentRefresh {
		r.refresh(now)
	}
	return r.median, r.high, r.median > 0
}

func (r *recent) refresh(now time.Time) {
	var buf [recentKept]time.Duration
	all := buf[:0]
	for _, d := range r.kept {
		if now.Sub(d.at) < latencyWindow { // what was never kept is older
			all = append(all, d.took)
		}
	}
	r.refreshed, r.median, r.high = now, 0, 0
	if len(all) < recentWarm {
		return
	}
	slices.Sort(all)
	r.median, r.high = all[len(all)/2], all[len(all)*hedgeQuantile/100]
	r.high += r.high / 16 // or half of all would be hedged where they are equal
}

// hedgeDelay returns how long a hedge waits for the attempt before it, in a call
// that may take left; 0 where there is to be none.
func (r *recent) hedgeDelay(now time.Time, left time.Duration) time.Duration {
	median, high, ok := r.quantiles(now)
	if !ok {
		return 0
	}
	return max(min(high, hedgeOverMedian*median, left/2), hedgeFloor)
}
