// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Trouble is how an attempt, or a probe, of an Endpoint last failed.
type Trouble struct {
	At time.Time
	// Err is a *hook.CallError. Its text has nothing of a body, but where the Cause is
	// BadAnswer it may quote what a webhook wrote.
	Err error
	// Unreached: there was no connection, or none under TLS. It says nothing about a review.
	Unreached bool
}

// record is how an Endpoint last fared: for people, not for who calls.
type record struct {
	trouble  atomic.Pointer[Trouble]
	answered atomic.Int64 // in Unix nanoseconds; 0: never
}

// recordInterval is how often an answer is noted where nothing else has happened: many
// goroutines would write the same word for each call.
const recordInterval = 100 * time.Millisecond

// answer notes that the Endpoint answered, or was connected to.
func (r *record) answer(now time.Time) {
	at, last := now.UnixNano(), r.answered.Load()
	trouble := r.trouble.Load()
	if at-last >= int64(recordInterval) || trouble != nil && trouble.At.UnixNano() >= last {
		r.answered.Store(at)
	}
}

// fail notes that it did not.
func (r *record) fail(now time.Time, err error, unreached bool) {
	r.trouble.Store(&Trouble{At: now, Err: err, Unreached: unreached})
}

// note notes the end of an attempt, as its breaker judges it. One that says nothing about
// the Endpoint is left out, but where the webhook asks for a pause.
func (r *record) note(end *result, judged breaker.Result, now time.Time) {
	switch {
	case end.verdict():
		r.answer(now)
	case judged != breaker.Excluded, end.kind == breaker.TooManyRequests:
		r.fail(now, end.err, judged == breaker.ConnectFailure)
	}
}

// Trouble returns how the Endpoint last failed; nil: it never has.
func (e *Endpoint) Trouble() *Trouble { return e.record.trouble.Load() }

// Answered returns when an attempt was last answered or a probe connected, to a tenth of a
// second; zero: never.
func (e *Endpoint) Answered() time.Time {
	if at := e.record.answered.Load(); at > 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// look sees to it that there is an idle connection, and notes whether that went well. The
// breaker learns nothing. host is the Target's, which an error names.
func (e *Endpoint) look(timeout time.Duration, host string) error {
	err := e.warm(timeout)
	now := time.Now()
	if err == nil {
		e.record.answer(now)
		return nil
	}
	_, failed := failureOf(err, host, timeout)
	e.record.fail(now, failed, true)
	return failed
}
