// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Reply is an HTTP answer. What it points to is valid until the Message has judged it.
type Reply struct {
	Status int
	// Header fields that some protocol looks at.
	ContentType, ContentEncoding []byte
	AcceptPost, AcceptEncoding   []byte
	Location, RetryAfter         []byte

	Body  []byte
	Limit int // of Body, in bytes; what is made of it must not be longer
	// Cut is why Body is only the beginning of an answer, or one that only a more
	// lenient client reads; nil: it is the whole.
	Cut error
}

// IsSuccess reports whether kube-apiserver looks at the body.
func (r *Reply) IsSuccess() bool {
	return r.Status >= http.StatusOK && r.Status <= http.StatusPartialContent
}

// IsBusy reports whether the status says that there is too much to do.
func (r *Reply) IsBusy() bool { return isBusy(r.Status) }

func isBusy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// kind is the kind of an answer that is none.
func (r *Reply) kind() breaker.Kind {
	switch {
	case r.Status == http.StatusTooManyRequests:
		return breaker.TooManyRequests
	case r.Status >= 500:
		return breaker.ServerError
	case r.Status >= 400:
		return breaker.ClientError
	}
	return breaker.BadAnswer
}

// The pauses that a server may ask for.
const (
	defaultPause = time.Second
	maxPause     = time.Minute
)

// pause returns how long the server asks to be left alone: by Retry-After (RFC 9110,
// in seconds or as a date) or by 429 alone.
func (r *Reply) pause() time.Duration {
	if r.IsSuccess() {
		return 0
	}
	value := string(r.RetryAfter)
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return min(time.Duration(min(seconds, int(maxPause/time.Second)))*time.Second, maxPause)
	}
	if at, err := time.Parse(http.TimeFormat, value); err == nil {
		return min(max(time.Until(at), 0), maxPause)
	}
	if r.Status == http.StatusTooManyRequests {
		return defaultPause
	}
	return 0
}

// startsAnswer reports whether the header of an answer is what is to be read next.
func startsAnswer(r *bufio.Reader) bool {
	const version = "HTTP/1."
	if r.Buffered() < len(version) {
		return false
	}
	start, _ := r.Peek(len(version)) // of what is there
	return string(start) == version
}

// unread is an answer whose header our own HTTP client does not read, as
// kube-apiserver's client reads it.
func unread(r io.Reader, limit int) Reply {
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(r, int64(maxHeader+limit))), nil)
	if err != nil {
		return Reply{}
	}
	body, _ := io.ReadAll(resp.Body) // as far as it comes
	return Reply{
		Status:          resp.StatusCode,
		ContentEncoding: []byte(resp.Header.Get("Content-Encoding")),
		Body:            body,
		Limit:           limit,
	}
}

// replyOf returns what there is of an answer, which it borrows.
func replyOf(resp *fasthttp.Response, limit int) Reply {
	h := &resp.Header
	return Reply{
		Status:          resp.StatusCode(),
		ContentType:     h.ContentType(),
		ContentEncoding: h.ContentEncoding(),
		AcceptPost:      h.Peek("Accept-Post"),
		AcceptEncoding:  h.Peek(fasthttp.HeaderAcceptEncoding),
		Location:        h.Peek(fasthttp.HeaderLocation),
		RetryAfter:      h.Peek(fasthttp.HeaderRetryAfter),
		Body:            resp.Body(),
		Limit:           limit,
	}
}

const (
	// maxHeader is the limit of an answer's headers.
	maxHeader = 64 << 10
	// lookTime is how long the beginning of an answer that is over a limit may take
	// to arrive.
	lookTime = time.Second
)

// readAnswer reads an answer of at most limit bytes by the deadline. rest is how
// many bytes behind it have been read. Of one that is over a limit it reads the
// beginning, which may deny: a webhook may quote a large object (C12).
func readAnswer(r *bufio.Reader, c net.Conn, resp *fasthttp.Response, limit int, deadline time.Time) (rest int, err error) {
	err = resp.ReadLimitBody(r, limit)
	large := r
	if isHeaderTooLarge(err) && startsAnswer(r) {
		large = bufio.NewReaderSize(r, maxHeader)
		err = resp.ReadLimitBody(large, limit)
	}
	if err == nil {
		if rest = r.Buffered(); large != r {
			rest += large.Buffered()
		}
		return rest, nil
	}
	if soon := time.Now().Add(lookTime); soon.Before(deadline) {
		_ = c.SetReadDeadline(soon)
	}
	beginning := Reply{}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		beginning = beyond(resp, large, limit)
	case startsAnswer(large):
		beginning = unread(large, limit)
	}
	if !beginning.IsSuccess() {
		return 0, err
	}
	return 0, &cutError{err: err, reply: beginning}
}

// beyond is the beginning of an answer whose body is over the limit, of which r has
// the rest.
func beyond(resp *fasthttp.Response, r io.Reader, limit int) Reply {
	reply := replyOf(resp, limit)
	if reply.IsSuccess() {
		more, _ := io.ReadAll(io.LimitReader(r, int64(limit-min(len(reply.Body), limit)))) // as far as it comes
		reply.Body = append(reply.Body[:len(reply.Body):len(reply.Body)], more...)
	}
	return reply
}
