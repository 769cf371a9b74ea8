// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// clustersPath begins every path that the dispatcher serves to clusters. No other is
// forwarded.
const clustersPath = "/v1/clusters/"

// Bounds of bodies. What the dispatcher takes is smaller, and it answers what is larger: this
// only bounds how long a connection is busy.
const (
	maxBodyBytes = 64 << 20
	// replayableBytes is how large a body may be that is read before it is sent, so that
	// it can be sent on another connection when the idle one that was picked turns out
	// to be closed. A larger one is sent while it comes.
	replayableBytes = 128 << 10
)

// outcome is what became of a request, in the spelling of metrics.
type outcome string

const (
	answered    outcome = "answered"    // by the dispatcher, whatever its status
	unreachable outcome = "unreachable" // no answer of the dispatcher began
	timedOut    outcome = "timeout"
	cut         outcome = "cut"      // the answer, or the request, did not come to its end
	canceled    outcome = "canceled" // the caller has gone
	refused     outcome = "refused"  // is nothing for the dispatcher
	busy        outcome = "busy"     // too many requests are under way
)

// outcomes are all of them.
func outcomes() []outcome {
	return []outcome{answered, unreachable, timedOut, cut, canceled, refused, busy}
}

// ServeHTTP forwards one call of a webhook. Every failure of ours is a status that is not
// 200, or a connection that is closed: to kube-apiserver both are a failed call, as a
// dispatcher that does not answer is, and the failurePolicy of the registration decides.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	become := f.forward(w, r)
	f.metrics.requests.WithLabelValues(string(become)).Inc()
	if become == cut {
		panic(http.ErrAbortHandler) // closes the connection: what was sent is no whole answer
	}
}

func (f *Forwarder) forward(w http.ResponseWriter, r *http.Request) outcome {
	deadline := time.Now().Add(timeoutOf(r.URL.Query()))
	c := http.NewResponseController(w)
	spare := deadline.Add(time.Second) // the call ends first, and is told apart from a caller that has gone
	_, _ = c.SetReadDeadline(spare), c.SetWriteDeadline(spare)
	if f.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	switch {
	case !strings.HasPrefix(r.URL.EscapedPath(), clustersPath):
		return refuse(w, http.StatusNotFound, "no such path")
	case r.Method != http.MethodPost:
		return refuse(w, http.StatusMethodNotAllowed, "the method must be POST")
	case r.ContentLength < 0:
		return refuse(w, http.StatusLengthRequired, "send a Content-Length")
	case r.ContentLength > maxBodyBytes:
		return refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		fail(w, http.StatusServiceUnavailable, "too many requests are under way")
		return busy
	}
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	out, err := f.request(ctx, r)
	if err != nil {
		return cut // of the caller's body
	}
	answer, err := f.files.current.Load().transport.RoundTrip(out)
	if err != nil {
		return f.failed(ctx, w, r, err)
	}
	defer func() { _ = answer.Body.Close() }()
	return reply(w, answer)
}

// request is what the dispatcher gets: the same path, query and body, and of the headers
// those that say what the body is and which trace it belongs to. An Authorization is the
// caller's, and the request is ours.
func (f *Forwarder) request(ctx context.Context, r *http.Request) (*http.Request, error) {
	to := &url.URL{Scheme: f.settings.URL.Scheme, Host: f.settings.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	body := io.Reader(r.Body)
	if r.ContentLength <= replayableBytes {
		read := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, read); err != nil {
			return nil, err
		}
		body = bytes.NewReader(read) // of which net/http can make another
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, err
	}
	out.ContentLength = r.ContentLength
	copyHeaders(out.Header, r.Header, "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "User-Agent", "Traceparent", "Tracestate")
	if _, given := r.Header["User-Agent"]; !given {
		out.Header["User-Agent"] = nil // not net/http's own
	}
	return out, nil
}

// reply passes an answer on. No Retry-After: kube-apiserver would hold the user's request
// and call again.
func reply(w http.ResponseWriter, answer *http.Response) outcome {
	if answer.ContentLength > maxBodyBytes {
		return cut
	}
	copyHeaders(w.Header(), answer.Header, "Content-Type", "Content-Encoding", "Content-Length", "Allow")
	if _, given := answer.Header["Content-Type"]; !given {
		w.Header()["Content-Type"] = nil // not a guess
	}
	w.WriteHeader(answer.StatusCode)
	n, err := io.Copy(w, io.LimitReader(answer.Body, maxBodyBytes+1))
	if err != nil || n > maxBodyBytes {
		return cut
	}
	return answered
}

func copyHeaders(to, from http.Header, names ...string) {
	for _, name := range names {
		if values := from[name]; len(values) > 0 {
			to[name] = values
		}
	}
}

// failed answers when the dispatcher does not.
func (f *Forwarder) failed(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) outcome {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fail(w, http.StatusGatewayTimeout, "the dispatcher did not answer in time")
		return timedOut
	case r.Context().Err() != nil:
		return canceled
	}
	f.log.Warn("call failed", "error", err.Error(), "path", r.URL.EscapedPath())
	fail(w, http.StatusBadGateway, "the dispatcher cannot be reached: "+err.Error())
	return unreachable
}

func refuse(w http.ResponseWriter, status int, text string) outcome {
	fail(w, status, text)
	return refused
}

// fail answers in words of ours. The rest of the request is not read.
func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Connection", "close")
	http.Error(w, "admission-dispatcher forwarder: "+text, status)
}

// timeoutOf is the time that the caller has: its timeout, which kube-apiserver always sends.
// What is no timeout is for the dispatcher to refuse.
func timeoutOf(query url.Values) time.Duration {
	d, err := time.ParseDuration(query.Get("timeout"))
	if err != nil || d <= 0 {
		return longestTimeout
	}
	return min(d, longestTimeout)
}
