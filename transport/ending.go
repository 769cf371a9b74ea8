// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"syscall"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// ending is how one attempt ended.
type ending struct {
	resp     codec.Response
	err      error // as Call returns it
	endpoint *Endpoint
	status   int          // of the HTTP answer; 0: there was none
	kind     breaker.Kind // of the attempt by itself
	// unsent: not a byte of the review has left, so that even a webhook with side
	// effects may be asked again.
	unsent bool
	// stale: a connection that had been used before, and gave no byte. The webhook
	// may just have closed it, which says nothing about it.
	stale bool
	// misread: the webhook perhaps does not read the form that it was sent, because
	// it had said that it does.
	misread bool
	plain   bool // it was sent Call.Plain
	// pause is how long the webhook asks to be spared extra attempts.
	pause time.Duration
}

// verdict reports whether the attempt decides the call: it was answered, or its
// answer, defective as it is, denies.
func (e *ending) verdict() bool {
	if e.err == nil {
		return true
	}
	var unusable *hook.CallError // which may have an AnswerError inside, that does not deny
	return !errors.As(e.err, &unusable)
}

// isAnswer reports whether the webhook has said something about the review, or its
// failing: not that nobody was reached, or is too busy.
func (e *ending) isAnswer() bool { return e.status != 0 && !isBusy(e.status) }

// allows reports whether the attempt decides the call, with an allow.
func (e *ending) allows() bool { return e.err == nil && e.resp.Allowed }

// answered reports whether the attempt says how long answers take: it got one, or
// waited for one to the end.
func (e *ending) answered() bool { return !e.broken() && !e.unsent }

// broken reports whether the connection failed, before any byte of an answer.
func (e *ending) broken() bool {
	switch e.kind {
	case breaker.Refused, breaker.Reset, breaker.ConnectTimedOut, breaker.TLSFailed:
		return true
	}
	return false
}

// stoodStill is how late a deadline may be noticed before it is this process that
// was not there, and nobody else's fault.
const stoodStill = 250 * time.Millisecond

// judge says what the attempt tells a breaker. late is how long after its
// deadline it ended, fair that its time was enough for a webhook that is well, lost
// that the call was decided without it.
//
// A hedge's loser is not cancelled but runs to its own deadline, so what it meets
// there is true: only its answers say nothing, because they were not waited for.
func (e *ending) judge(late time.Duration, fair, lost bool) breaker.Result {
	kind := e.kind
	switch {
	case e.stale:
		return breaker.Excluded
	case kind == breaker.TimedOut && late > stoodStill:
		kind = breaker.Paused
	case kind == breaker.TimedOut && !fair:
		kind = breaker.DeadlineTooShort
	case lost && !e.broken() && kind != breaker.TimedOut:
		kind = breaker.HedgeLost
	}
	return breaker.Of(kind)
}

// kindOf says how an attempt ended whose error is err.
func kindOf(resp codec.Response, err error) breaker.Kind {
	switch {
	case err == nil && resp.Allowed:
		return breaker.Allowed
	case err == nil:
		return breaker.Denied
	}
	return kindOfError(err)
}

func kindOfError(err error) breaker.Kind {
	var call *hook.CallError
	if !errors.As(err, &call) {
		return breaker.BadAnswer
	}
	var dial *dialError
	dialling := errors.As(err, &dial)
	switch {
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return breaker.NotSent // it is this process that is out of descriptors
	case call.Cause == hook.Timeout && dialling && dial.queued:
		return breaker.NotSent // it is our own handshakes that take long
	case call.Cause == hook.Timeout && dialling && dial.late > stoodStill:
		return breaker.Paused
	case call.Cause == hook.Timeout && dialling && !dial.short:
		return breaker.ConnectTimedOut
	case call.Cause == hook.Timeout:
		return breaker.TimedOut
	case call.Cause == hook.TLS:
		return breaker.TLSFailed
	case call.Cause == hook.Shed:
		return breaker.NotSent
	case call.Cause == hook.Unreachable && dialling:
		return breaker.Refused
	case call.Cause == hook.Unreachable:
		return breaker.Reset
	}
	return breaker.BadAnswer
}

// kindOfStatus is the kind of an answer that is none because of its HTTP status.
func kindOfStatus(status int) breaker.Kind {
	switch {
	case status == 429:
		return breaker.TooManyRequests
	case status >= 500:
		return breaker.ServerError
	case status >= 400:
		return breaker.ClientError
	}
	return breaker.BadAnswer
}
