// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// attempt is one HTTP try, which ends by the call's deadline. Whoever makes it
// holds the call's Body. Nothing is sent once nobody needs the answer. With fresh it goes over a connection that is new; idle
// ones, which the webhook may have closed as well, are given up.
func (c *Client) attempt(ctx context.Context, r *race, chosen *choice, fresh bool) ending {
	call := &r.Call
	e, who := chosen.endpoint, holder{call.Cluster, call.Shadow}
	c.adopt(e)
	if !e.slots.acquire(who, call.Deadline) {
		return e.failed(errNoSlot, call, 0)
	}
	defer e.slots.release(who)
	left := time.Until(call.Deadline)
	if left <= 0 {
		return ending{endpoint: e, kind: breaker.NotSent, unsent: true, err: noTimeLeft()}
	}
	body, form, err := call.sent(chosen.plain)
	if err != nil {
		return ending{endpoint: e, kind: breaker.NotSent, err: err}
	}
	defer body.Release()
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	req := c.requests.Get().(*request)
	*req = request{head: &call.Target.head, form: form, timeout: left, cluster: call.Cluster, body: body.Bytes(), race: r}
	inject(ctx, &req.trace)
	err = e.exchange(req, answer, &chosen.ticket, call.Deadline, fresh)
	*req = request{} // it has borrowed
	c.requests.Put(req)
	if errors.Is(err, errNotNeeded) {
		return ending{endpoint: e, kind: breaker.NotSent, unsent: true, err: &hook.CallError{Cause: hook.NoTimeLeft, Err: err}}
	}
	if err != nil {
		return e.failed(err, call, left)
	}
	end := e.read(answer, call)
	c.learn(ctx, call, answer, end.err == nil)
	return end
}

// learn notes what an answer, which is a verdict or not, says that the webhook reads.
func (c *Client) learn(ctx context.Context, call *Call, answer *fasthttp.Response, verdict bool) {
	now := time.Now()
	changed, lost := call.Target.language.learn(answer, verdict, now)
	if !changed {
		return
	}
	s := Switch{Owner: call.Owner, Target: call.Target, Reads: call.Target.Reads(now)}
	if lost {
		s.Err = errTakenBack
	}
	c.observer.Switched(ctx, s)
}

var errTakenBack = errors.New("its answers do not say any more that it reads what it has read")

// isMisreading reports whether an answer that is none may be what a webhook says that
// does not read what it was sent: by any status and by any defect. Not so what says
// that it is too busy to read, and that it failed where it offers the form anew.
func isMisreading(answer *fasthttp.Response) bool {
	status := answer.StatusCode()
	_, offers := readingOf(answer)
	return !isBusy(status) && (!offers || status < fasthttp.StatusInternalServerError)
}

// isBusy reports whether a status says that there is too much to do.
func isBusy(status int) bool {
	switch status {
	case fasthttp.StatusTooManyRequests, fasthttp.StatusServiceUnavailable, fasthttp.StatusGatewayTimeout:
		return true
	}
	return false
}

// failed is the ending of an attempt that got no HTTP answer, or none that could be
// read.
func (e *Endpoint) failed(err error, call *Call, left time.Duration) ending {
	var (
		dial   *dialError
		silent *silentError
		beyond *beyondError
	)
	end := ending{endpoint: e, err: callError(err, call.Target.host, left)}
	if errors.As(err, &beyond) && beyond.denies {
		end.err = &codec.AnswerError{Reason: end.err.Error(), Denies: true}
	}
	end.kind = kindOf(codec.Response{}, end.err)
	closed := errors.As(err, &silent) && silent.reused
	end.unsent = errors.As(err, &dial) || errors.Is(err, errNoSlot) || errors.Is(err, fasthttp.ErrNoFreeConns) || closed && silent.unwritten
	end.stale = closed && end.kind == breaker.Reset
	end.misread = end.kind == breaker.BadAnswer || end.kind == breaker.Reset && !end.stale // as when its server panics
	return end
}

func noTimeLeft() error {
	return &hook.CallError{Cause: hook.NoTimeLeft, Err: errors.New("no time left for the call")}
}

// The pauses that a webhook may ask for.
const (
	defaultPause = time.Second
	maxPause     = time.Minute
)

// pauseOf returns how long the webhook asks to be left alone: by Retry-After
// (RFC 9110, in seconds or as a date) or by 429 alone.
func pauseOf(answer *fasthttp.Response) time.Duration {
	value := string(answer.Header.Peek(fasthttp.HeaderRetryAfter))
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return min(time.Duration(min(seconds, int(maxPause/time.Second)))*time.Second, maxPause)
	}
	if at, err := fasthttp.ParseHTTPDate([]byte(value)); err == nil {
		return min(max(time.Until(at), 0), maxPause)
	}
	if answer.StatusCode() == fasthttp.StatusTooManyRequests {
		return defaultPause
	}
	return 0
}
