// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"testing"
	"testing/synctest"
	"time"
)

// Latency is of the last ten seconds: nothing before the first attempt, and
// nothing again when all of them are older.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, err := NewTarget(TargetSpec{URL: "https://w.example.com/"})
		if err != nil {
			t.Fatal(err)
		}
		if got := target.Latency(); got != (Latency{}) {
			t.Errorf("before the first attempt: %+v", got)
		}
		for i := range 100 {
			took := 10 * time.Millisecond
			if i >= 97 {
				took = time.Second
			}
			target.latency.record(time.Now(), took)
		}
		got := target.Latency()
		if got.Attempts != 100 || !near(got.P50, 10*time.Millisecond) || !near(got.P95, 10*time.Millisecond) || !near(got.P99, time.Second) {
			t.Errorf("%+v", got)
		}
		<-time.After(latencyWindow - 1)
		if got := target.Latency(); got.Attempts != 100 {
			t.Errorf("a moment before ten seconds have passed: %+v", got)
		}
		<-time.After(1)
		if got := target.Latency(); got != (Latency{}) {
			t.Errorf("ten seconds later: %+v", got)
		}
		<-time.After(time.Hour)
		target.latency.record(time.Now(), time.Second)
		if got := target.Latency(); got.Attempts != 1 {
			t.Errorf("after an hour: %+v", got)
		}
	})
}

// What decides about hedges is of the last ten seconds, and is looked at every 250 ms.
func TestRecentIsRecent(t *testing.T) {
	var r recent
	now := time.Unix(1_000_000, 0)
	isKnown := func(after time.Duration, want bool) {
		t.Helper()
		if _, _, ok := r.quantiles(now.Add(after)); ok != want {
			t.Errorf("known after %v: %v", after, ok)
		}
	}
	for range recentWarm - 1 {
		r.record(now, time.Millisecond)
	}
	isKnown(0, false)
	r.record(now, time.Millisecond)
	isKnown(recentRefresh-1, false)
	isKnown(recentRefresh, true)
	isKnown(latencyWindow-1, true)
	isKnown(latencyWindow-1+recentRefresh, false)
	r = recent{}
	for range recentWarm {
		r.record(now, time.Millisecond)
	}
	isKnown(latencyWindow, false)
}

// near allows for the histogram's one significant digit.
func near(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }
