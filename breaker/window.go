// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

var errFailed = errors.New("the attempt failed")

// window counts the outcomes of the last Settings.Window and says when they are
// bad enough. It is one gobreaker in its closed state; once that has opened,
// the window is done with and another takes its place.
//
// An outcome is counted when it is known. gobreaker would count it at the time
// of its request and drop it if that lies outside the window: the timeouts of a
// webhook that hangs for longer than the window would never be seen.
type window struct {
	breaker *gobreaker.CircuitBreaker[struct{}]
	// confined keeps the window from tripping; it is set by its owner.
	confined bool
	tripped  bool
}

// newWindow returns an empty window that begins now.
func newWindow(s *Settings) *window {
	w := &window{}
	w.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     s.Window,
		BucketPeriod: max(s.Window/buckets, time.Nanosecond),
		// Both are called under gobreaker's lock and only touch w, which is
		// guarded by the Breaker's.
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return !w.confined && int(c.Requests) >= s.MinRequests && tallyOf(c).bad(s)
		},
		OnStateChange: func(string, gobreaker.State, gobreaker.State) { w.tripped = true },
	})
	return w
}

// record counts one outcome and reports whether the window has tripped.
func (w *window) record(r Result) bool {
	outcome := failed
	if r == Success {
		outcome = succeeded
	}
	_, _ = w.breaker.Execute(outcome) // its error is our own
	return w.tripped
}

// What gobreaker is given to execute: the attempt is over, this is how it ended.
func succeeded() (struct{}, error) { return struct{}{}, nil }
func failed() (struct{}, error)    { return struct{}{}, errFailed }

// tally returns the counts as of now. gobreaker lets old buckets go only when
// it is asked for its state.
func (w *window) tally() tally {
	w.breaker.State()
	return tallyOf(w.breaker.Counts())
}

// tally is a number of outcomes and how many of them were failures.
type tally struct{ outcomes, failures int }

func tallyOf(c gobreaker.Counts) tally {
	return tally{outcomes: int(c.Requests), failures: int(c.TotalFailures)}
}

// bad reports whether the share of failures is one that opens.
func (t tally) bad(s *Settings) bool {
	return t.failures > 0 && float64(t.failures) >= s.FailureRatio*float64(t.outcomes)
}

// worse orders by failures, then by their share.
func (t tally) worse(than tally) bool {
	if t.failures != than.failures {
		return t.failures > than.failures
	}
	return t.outcomes < than.outcomes
}

func (t tally) plus(o tally) tally {
	return tally{t.outcomes + o.outcomes, t.failures + o.failures}
}

func (t tally) minus(o tally) tally {
	return tally{t.outcomes - o.outcomes, t.failures - o.failures}
}
