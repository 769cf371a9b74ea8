// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// How an Endpoint fares is what its breaker says first, and then how the last attempt or
// probe ended.
func TestCondition(t *testing.T) {
	now := time.Unix(1000, 0)
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		happens func(*record)
		state   breaker.State
		want    Condition
	}{
		"nothing":                   {func(*record) {}, breaker.Closed, Untried},
		"an answer":                 {func(r *record) { r.answer(now) }, breaker.Closed, Healthy},
		"a failure":                 {func(r *record) { r.fail(now, failed, false) }, breaker.Closed, Failing},
		"no connection":             {func(r *record) { r.fail(now, failed, true) }, breaker.Closed, Unreachable},
		"a failure after an answer": {func(r *record) { r.answer(now); r.fail(now.Add(1), failed, false) }, breaker.Closed, Failing},
		"an answer after a failure": {func(r *record) { r.fail(now, failed, true); r.answer(now.Add(1)) }, breaker.Closed, Healthy},
		"answers in quick succession, a failure between": {func(r *record) { r.answer(now); r.fail(now.Add(1), failed, true); r.answer(now.Add(2)) }, breaker.Closed, Healthy},
		"open":      {func(r *record) { r.answer(now) }, breaker.Open, Ejected},
		"half-open": {func(r *record) { r.fail(now, failed, true) }, breaker.HalfOpen, Ejected},
		"ramping":   {func(r *record) { r.answer(now) }, breaker.Ramping, Recovering},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Endpoint{}
			c.happens(&e.record)
			if got := e.Condition(c.state); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if Condition(99).String() != "unknown" {
		t.Error("a condition that is none has a name")
	}
}

// What says nothing of the Endpoint is not noted; a denial is an answer.
func TestWhatIsNoted(t *testing.T) {
	unusable := &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}
	for name, c := range map[string]struct {
		end       result
		judged    breaker.Result
		noted     bool
		answered  bool
		unreached bool
	}{
		"an answer":           {result{}, breaker.Success, false, true, false},
		"a lost answer":       {result{}, breaker.Excluded, false, true, false},
		"a failure":           {result{err: unusable, kind: breaker.TimedOut}, breaker.Failure, true, false, false},
		"a refused connect":   {result{err: unusable, kind: breaker.Refused}, breaker.ConnectFailure, true, false, true},
		"a pause":             {result{err: unusable, kind: breaker.TooManyRequests}, breaker.Excluded, true, false, false},
		"too short a time":    {result{err: unusable, kind: breaker.TimedOut}, breaker.Excluded, false, false, false},
		"nothing was written": {result{err: unusable, kind: breaker.NotSent}, breaker.Excluded, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Endpoint{}
			e.record.note(&c.end, c.judged, time.Now())
			if trouble := e.Trouble(); (trouble != nil) != c.noted || trouble != nil && trouble.Unreached != c.unreached {
				t.Errorf("%+v", trouble)
			}
			if e.Answered().IsZero() == c.answered {
				t.Errorf("answered at %v", e.Answered())
			}
		})
	}
}
