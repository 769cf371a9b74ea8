// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// The dispatcher's delay of a hedge, as its documentation has it: the 95th of a
// hundred latencies, but no less than a millisecond and no more than four medians.
const (
	leastDelay      = time.Millisecond
	mostMedianDelay = 4
)

const rounding = 1e-12 // of shares

// TestHedging is figure P11, and row F8 in figures: a hundredth of the answers
// comes late, from two Endpoints, each on its own; with hedging off and on, in turn.
func TestHedging(t *testing.T) {
	figure(t, "P11")
	for pair := range 3 {
		compareHedging(t, pair+1, &row{id: "P11", what: "1 % of answers 1 s late", timeout: 5, during: 15 * time.Second}, time.Second)
	}
	for pair := range 3 {
		compareHedging(t, pair+1, &row{id: "F8", what: "1 % of answers 100 ms late", during: 10 * time.Second}, 100*time.Millisecond)
	}
}

// compareHedging runs a row twice, and says what hedging brings, and what it could
// bring at best by the latencies without it.
func compareHedging(t *testing.T, pair int, r *row, late time.Duration) {
	r.servers, r.rate, r.hooks, r.before = 2, 60, willing(), 5*time.Second
	r.begin = behave(script.Behaviour{Delay: 5 * time.Millisecond})
	r.fault = behave(script.Behaviour{Delay: 5 * time.Millisecond, SlowBy: late, SlowShare: 0.01})
	var took [2][]time.Duration
	var extra float64
	for i, hedge := range []string{noHedge, ""} {
		r.binding = hedge
		w, rec := r.run(t)
		r.mustBeRight(t, w, rec)
		took[i] = rec.waits()
		extra = float64(rec.extra()) / float64(len(rec.attempts))
	}
	off, on, best := quantile(took[0], 0.999), quantile(took[1], 0.999), hedged(took[0], 0.999)
	progress("%s pair %d: p99.9 %v without hedging, %v with: %.0f x; %.1f %% extra attempts", r.id, pair, rounded(off), rounded(on), float64(off)/float64(on), 100*extra)
	progress("%s pair %d: p99.9 %v in theory, with a delay of %v: %.2f x that", r.id, pair, rounded(best), rounded(delay(took[0])), float64(on)/float64(best))
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// waits are the times of affected calls that ask a webhook, sorted.
func (rec *record) waits() []time.Duration {
	var list []time.Duration
	for _, c := range rec.affected() {
		if !c.Exempt {
			list = append(list, c.Done-c.Sent)
		}
	}
	slices.Sort(list)
	return list
}

// quantile of what is sorted and not empty: the least value that no more than 1-q
// of all are above.
func quantile(sorted []time.Duration, q float64) time.Duration {
	for _, t := range sorted {
		if beyond(sorted, t) <= 1-q+rounding {
			return t
		}
	}
	return sorted[len(sorted)-1]
}

// beyond is the share of what is sorted that is above t.
func beyond(sorted []time.Duration, t time.Duration) float64 {
	at := sort.Search(len(sorted), func(i int) bool { return sorted[i] > t })
	return float64(len(sorted)-at) / float64(len(sorted))
}

// delay is how long the dispatcher would wait before a hedge.
func delay(sorted []time.Duration) time.Duration {
	return max(min(quantile(sorted, 0.95), mostMedianDelay*quantile(sorted, 0.5)), leastDelay)
}

// hedged is the theory of hedging: the quantile of min(A, d+B), where A and B are
// independent draws from the latencies without hedging and d is the delay. It is
// exact: P(min(A, d+B) > t) = P(A > t) P(B > t-d).
func hedged(sorted []time.Duration, q float64) time.Duration {
	d := delay(sorted)
	possible := slices.Clone(sorted)
	for _, b := range sorted {
		possible = append(possible, d+b)
	}
	slices.Sort(possible)
	at := sort.Search(len(possible), func(i int) bool {
		t := possible[i]
		return beyond(sorted, t)*beyond(sorted, t-d) <= 1-q+rounding
	})
	return possible[min(at, len(possible)-1)]
}

func TestHedgingTheory(t *testing.T) {
	var took []time.Duration
	for i := range 1000 {
		d := 5 * time.Millisecond
		if i >= 990 {
			d += time.Second
		}
		took = append(took, d)
	}
	for _, c := range []struct{ q, want float64 }{
		{0.5, 5}, {0.99, 5}, // the first is enough
		{0.999, 10}, {0.9999, 10}, // the hedge's answer, 5 ms after the delay of 5 ms
		{0.99999, 1005}, // both are late
	} {
		if got := hedged(took, c.q); got != time.Duration(c.want*float64(time.Millisecond)) {
			t.Errorf("%v: %v, want %v ms", c.q, got, c.want)
		}
	}
	if got := quantile(took, 0.999); got != 1005*time.Millisecond {
		t.Error(got)
	}
}
