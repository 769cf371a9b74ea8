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
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	req := request{head: &call.Target.head, timeout: left, cluster: call.Cluster, body: call.Body.Bytes()}
	if err := e.exchange(&req, answer, call.Deadline, fresh); err != nil {
		return e.failed(err, call.Target.host, left)
	}
	if err := checkHTTP(answer, call.Target.host); err != nil {
		return ending{endpoint: e, err: err, kind: kindOfStatus(answer.StatusCode()), pause: pauseOf(answer)}
	}
	resp, err := codec.Verify(answer.Body(), call.Want)
	if err != nil {
		err = unusable(err)
	}
	return ending{endpoint: e, resp: resp, err: err, kind: kindOf(resp, err)}
}

// unusable makes a CallError of an answer that does not fit, unless it denies.
func unusable(err error) error {
	if bad := (*codec.AnswerError)(nil); errors.As(err, &bad) && bad.Denies {
		return err
	}
	return &CallError{Cause: BadAnswer, Err: fmt.Errorf("received invalid webhook response: %w", err)}
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
