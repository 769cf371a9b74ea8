// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
)

// attempt is one HTTP try, which ends by the call's deadline. Whoever makes it
// holds the call's Body. With fresh it goes over a connection that is new; idle
// ones, which the webhook may have closed as well, are given up.
func (c *Client) attempt(call *Call, e *Endpoint, fresh bool) ending {
	left := time.Until(call.Deadline)
	if left <= 0 {
		return ending{endpoint: e, kind: breaker.NotSent, unsent: true, err: noTimeLeft()}
	}
	c.adopt(e)
	req, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	defer fasthttp.ReleaseRequest(req)

	c.write(req, call, left)
	if fresh {
		e.exchange.fresh.Store(req, true)
		defer e.exchange.fresh.Delete(req)
	}
	if err := e.pool.DoDeadline(req, answer, call.Deadline); err != nil {
		return e.failed(err, call.Target.host, left)
	}
	if err := checkHTTP(answer, call.Target.host); err != nil {
		return ending{endpoint: e, err: err, kind: kindOfStatus(answer.StatusCode()), pause: pauseOf(answer)}
	}
	resp, err := codec.Verify(answer.Body(), call.Want)
	if bad := (*codec.AnswerError)(nil); errors.As(err, &bad) && !bad.Denies {
		err = &CallError{Cause: BadAnswer, Err: fmt.Errorf("received invalid webhook response: %w", err)}
	}
	return ending{endpoint: e, resp: resp, err: err, kind: kindOf(resp, err)}
}

// failed is the ending of an attempt that got no HTTP answer.
func (e *Endpoint) failed(err error, host string, left time.Duration) ending {
	var dial *dialError
	var silent *silentError
	end := ending{endpoint: e, err: callError(err, host, left)}
	end.kind = kindOf(codec.Response{}, end.err)
	end.unsent = errors.As(err, &dial) || errors.Is(err, fasthttp.ErrNoFreeConns)
	end.stale = errors.As(err, &silent) && silent.reused && end.kind == breaker.Reset
	return end
}

func noTimeLeft() error {
	return &CallError{Cause: NoTimeLeft, Err: errors.New("no time left for the call")}
}

// write fills in the request. Its body is borrowed from the Call's Body.
func (c *Client) write(req *fasthttp.Request, call *Call, left time.Duration) {
	seconds := (left + time.Second - 1) / time.Second
	h := &req.Header
	h.SetMethod(fasthttp.MethodPost)
	h.SetContentType("application/json")
	h.Set("Accept", "application/json, */*")
	h.SetUserAgent(c.userAgent)
	h.Set("Admission-Cluster", call.Cluster)
	if call.Target.authorize != "" {
		h.Set("Authorization", call.Target.authorize)
	}
	req.SetRequestURI("https://" + call.Target.host + call.Target.path + "?timeout=" + strconv.Itoa(int(seconds)) + "s")
	req.SetBodyRaw(call.Body.Bytes())
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
