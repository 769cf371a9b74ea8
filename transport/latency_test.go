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
		timer := time.NewTimer(latencySlots * latencySlot)
		<-timer.C
		if got := target.Latency(); got != (Latency{}) {
			t.Errorf("ten seconds later: %+v", got)
		}
	})
}

// near allows for the histogram's one significant digit.
func near(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }
