// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Call is one question to one webhook.
type Call struct {
	Target *Target
	// Body is the AdmissionReview to send. The caller keeps its own reference;
	// Client retains the Body for as long as an attempt may read it.
	Body *codec.Body
	// Want is what the answer must fit. Its UID is borrowed until Call returns.
	Want codec.Expectation
	// Cluster is sent as the Admission-Cluster header.
	Cluster string
	// Deadline is when the answer must be there: the webhook's own timeout and
	// the time left for the admission, whichever is first.
	Deadline time.Time
}

// Call asks once and returns a verified answer. It fails with a *CallError, or
// with a *codec.AnswerError whose Denies is set. ctx carries shutdown and trace;
// the deadline is the Call's. Every step of the attempt is bounded by the
// deadline, so nothing runs on when Call has returned.
func (c *Client) Call(_ context.Context, call Call) (codec.Response, error) {
	start := time.Now()
	resp, err := c.call(&call, start)
	var unusable *CallError
	if errors.As(err, &unusable) {
		unusable.Elapsed = time.Since(start)
	}
	return resp, err
}

func (c *Client) call(call *Call, now time.Time) (codec.Response, error) {
	left := call.Deadline.Sub(now)
	if left <= 0 {
		return codec.Response{}, &CallError{Cause: NoTimeLeft, Err: errors.New("no time left for the call")}
	}
	endpoint := call.Target.pick()
	if endpoint == nil {
		return codec.Response{}, &CallError{Cause: Unreachable, Err: call.Target.whyNoEndpoint()}
	}
	return c.attempt(call, endpoint, left)
}

// attempt is one HTTP try.
func (c *Client) attempt(call *Call, e *Endpoint, left time.Duration) (codec.Response, error) {
	e.once.Do(func() { e.dialer, e.pool.MaxResponseBodySize = c.dialer, c.responseLimit })
	body := call.Body.Retain()
	defer body.Release()
	req, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	defer fasthttp.ReleaseRequest(req)

	c.write(req, call, left)
	if err := e.pool.DoDeadline(req, answer, call.Deadline); err != nil {
		return codec.Response{}, callError(err, call.Target.host, left)
	}
	if err := checkHTTP(answer, call.Target.host); err != nil {
		return codec.Response{}, err
	}
	resp, err := codec.Verify(answer.Body(), call.Want)
	if bad := (*codec.AnswerError)(nil); errors.As(err, &bad) && !bad.Denies {
		err = &CallError{Cause: BadAnswer, Err: fmt.Errorf("received invalid webhook response: %w", err)}
	}
	return resp, err
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
