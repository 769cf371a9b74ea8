// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"pgregory.net/rapid"
)

// A window has what gobreaker's rolling window has, whatever comes when.
func TestWindowCountsAsGobreaker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Settings{Window: rapid.SampledFrom([]time.Duration{30, time.Second, 10 * time.Second}).Draw(rt, "window")}.withDefaults()
		pauses := rapid.SliceOfN(rapid.Int64Range(0, 150), 1, 60).Draw(rt, "pauses") // in hundredths of the window
		what := rapid.SliceOfN(rapid.SampledFrom([]error{nil, errors.New("failed"), errLook}), len(pauses), len(pauses)).Draw(rt, "what")
		different := ""
		synctest.Test(t, func(*testing.T) {
			w := newWindow(&s, time.Now())
			theirs := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
				Interval: s.Window, BucketPeriod: s.Window / buckets, ReadyToTrip: func(gobreaker.Counts) bool { return false },
			})
			for i, err := range what {
				<-time.After(s.Window * time.Duration(pauses[i]) / 100)
				if !errors.Is(err, errLook) {
					w.record(time.Now(), err != nil)
					_, _ = theirs.Execute(func() (int, error) { return 0, err })
				}
				theirs.State() // lets old buckets go
				c := theirs.Counts()
				if got, want := w.tally(time.Now()), (tally{int(c.Requests), int(c.TotalFailures)}); got != want {
					different = fmt.Sprintf("after step %d: %+v, gobreaker has %+v", i, got, want)
					return
				}
			}
		})
		if different != "" {
			rt.Fatal(different)
		}
	})
}

// errLook is a step that only looks.
var errLook = errors.New("look")
