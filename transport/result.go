// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// result is how one attempt ended.
type result struct {
	resp   codec.Response
	err    error        // as Call returns it
	status int          // of the HTTP answer; 0: there was none
	kind   breaker.Kind // of the attempt by itself
	// unsent: not a byte of the review has left, so that even a webhook with side
	// effects may be asked again.
	unsent bool
	// stale: a connection that had been used before, and gave no byte. The webhook
	// may just have closed it, which says nothing about it.
	stale bool
	// doubtful: the server perhaps does not read the wording that it was sent, because
	// it had said that it does.
	doubtful bool
	plain    bool    // it was sent the plain wording
	heard    *Switch // as in the Judgment
	// pause is how long the webhook asks to be spared extra attempts.
	pause time.Duration
}

// verdict reports whether the attempt decides the call: it was answered, or its
// answer, defective as it is, denies.
func (e *result) verdict() bool {
	if e.err == nil {
		return true
	}
	var unusable *hook.CallError // which may have an AnswerError inside, that does not deny
	return !errors.As(e.err, &unusable)
}

// isAnswer reports whether the webhook has said something about the review, or its
// failing: not that nobody was reached, or is too busy.
func (e *result) isAnswer() bool { return e.status != 0 && !isBusy(e.status) }

// allows reports whether the attempt decides the call, with an allow.
func (e *result) allows() bool { return e.err == nil && e.resp.Allowed }

// answered reports whether the attempt says how long answers take: it got one, or
// waited for one to the end.
func (e *result) answered() bool { return !e.broken() && !e.unsent }

// broken reports whether the connection failed, before any byte of an answer.
func (e *result) broken() bool {
	switch e.kind {
	case breaker.Refused, breaker.Reset, breaker.ConnectTimedOut, breaker.TLSFailed:
		return true
	}
	return false
}

// judge says what the attempt tells a breaker. late is how long after its
// deadline it ended, fair that its time was enough for a webhook that is well, lost
// that the call was decided without it.
//
// A hedge's loser is not cancelled but runs to its own deadline, so what it meets
// there is true: only its answers say nothing, because they were not waited for.
func (e *result) judge(late time.Duration, fair, lost bool) breaker.Result {
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

// read is the result of an attempt that got an HTTP answer.
func read(reply Reply, call *Call) result {
	j := call.Message.Judge(reply)
	end := result{resp: j.Response, err: j.Err, doubtful: j.Doubtful, heard: j.Switch, status: reply.Status, kind: breaker.Denied}
	switch {
	case j.Err != nil:
		end.kind, end.pause = reply.kind(), reply.pause()
	case j.Response.Allowed:
		end.kind = breaker.Allowed
	}
	return end
}

// failed is the result of an attempt that got no HTTP answer, or none that could be
// read.
func failed(err error, call *Call, left time.Duration) result {
	switch _, unusable := errors.AsType[*hook.CallError](err); {
	case errors.Is(err, errNotNeeded), errors.Is(err, errNoTimeLeft):
		return unsent(err)
	case unusable: // there is nothing to send
		return result{kind: breaker.NotSent, err: err}
	}
	f, unusable := failureOf(err, call.Target.host, left)
	end := result{err: unusable, kind: f.kind}
	if cut, ok := errors.AsType[*cutError](err); ok {
		cut.reply.Cut = unusable
		if end.err = call.Message.Judge(cut.reply).Err; end.verdict() {
			end.kind = breaker.BadAnswer
		}
	}
	silent, ok := errors.AsType[*silentError](err)
	closed := ok && silent.reused
	_, dialling := errors.AsType[*dialError](err)
	end.unsent = dialling || f.cause == hook.Shed || closed && silent.unwritten
	end.stale = closed && end.kind == breaker.Reset
	end.doubtful = end.kind == breaker.BadAnswer || end.kind == breaker.Reset && !end.stale // as when its server panics
	return end
}

// unsent is the result of an attempt of which not a byte has left.
func unsent(why error) result {
	return result{kind: breaker.NotSent, unsent: true, err: &hook.CallError{Cause: hook.NoTimeLeft, Err: why}}
}
