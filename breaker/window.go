// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

var errFailed = errors.New("the attempt failed")

// window counts the outcomes of the last Settings.Window: one gobreaker that
// never leaves its closed state.
//
// An outcome is counted when it is known. gobreaker would count it at the time
// of its request and drop it if that lies outside the window: the timeouts of a
// webhook that hangs for longer than the window would never be seen.
type window struct {
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// newWindow returns an empty window that begins now.
func newWindow(s *Settings) *window {
	return &window{gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     s.Window,
		BucketPeriod: max(s.Window/buckets, time.Nanosecond),
		ReadyToTrip:  func(gobreaker.Counts) bool { return false },
	})}
}

// record counts one outcome.
func (w *window) record(failure bool) {
	outcome := succeeded
	if failure {
		outcome = failed
	}
	_, _ = w.breaker.Execute(outcome) // its error is our own
}

// What gobreaker is given to execute: the attempt is over, this is how it ended.
func succeeded() (struct{}, error) { return struct{}{}, nil }
func failed() (struct{}, error)    { return struct{}{}, errFailed }

// tally returns the counts as of now. gobreaker lets old buckets go only when
// it is asked for its state.
func (w *window) tally() tally {
	w.breaker.State()
	c := w.breaker.Counts()
	return tally{outcomes: int(c.Requests), failures: int(c.TotalFailures)}
}

// tally is a number of outcomes and how many of them were failures.
type tally struct{ outcomes, failures int }

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
