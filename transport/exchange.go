// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
)

// exchange sends one request and reads its answer, by the deadline. With fresh it
// goes over a connection that is new; idle ones are given up. The ticket learns
// that there is a connection.
//
// The uid of a call is the same in all its attempts, so it cannot tell a stale
// answer. A connection that has anything to read before the request
// is sent, or after the answer has been read, is closed and not used again. That
// also finds most connections that the webhook closed while they were idle.
func (e *Endpoint) exchange(req *request, resp *fasthttp.Response, ticket *breaker.Ticket, deadline time.Time, fresh bool) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fasthttp.ErrTimeout
		}
		cc, err := e.pool.AcquireConn(left, false)
		if err != nil {
			return err
		}
		c, ours := cc.Conn().(*conn)
		if ours && (!c.wake() || c.served && fresh) {
			e.pool.CloseConn(cc)
			continue
		}
		ticket.Reached()
		reused, written := ours && c.served, int64(0)
		if ours {
			written = c.records.written
		}
		clean, err := true, errNotNeeded // as to connect, or to wait for that, took too long
		if req.race == nil || req.race.isNeeded() {
			clean, err = talk(&e.pool, cc.Conn(), req, resp, deadline)
		}
		if clean && (!ours || c.rest()) {
			e.pool.ReleaseConn(cc)
			e.closeIfRetired()
		} else {
			e.pool.CloseConn(cc)
		}
		if err != nil {
			var silent *silentError
			if errors.As(err, &silent) {
				silent.reused = reused
				silent.unwritten = ours && c.records.written == written
			}
		}
		return err
	}
}

var errNotNeeded = errors.New("the admission was answered before the review was sent")

// silentError says that a connection ended before any byte of an answer.
type silentError struct {
	err       error
	reused    bool // it had been open for a while
	unwritten bool // not a byte of the request has left
}

func (e *silentError) Error() string { return e.err.Error() }

func (e *silentError) Unwrap() error { return e.err }

// talk writes req and reads resp within the deadline. clean tells whether the
// connection can carry another request. A webhook may answer, and close, before
// it has read the whole review: its verdict stands, as it does with net/http.
func talk(pool *fasthttp.HostClient, c net.Conn, req *request, resp *fasthttp.Response, deadline time.Time) (clean bool, err error) {
	if err := c.SetDeadline(deadline); err != nil {
		return false, err
	}
	w := pool.AcquireWriter(c)
	err = req.write(w)
	pool.ReleaseWriter(w)
	if err != nil && isTimeout(err) {
		return false, err
	}
	whole := err == nil
	r := pool.AcquireReader(c)
	defer pool.ReleaseReader(r)
	if _, err := r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = fasthttp.ErrConnectionClosed
		}
		return false, &silentError{err: err}
	}
	rest, err := readAnswer(r, c, resp, pool.MaxResponseBodySize, deadline)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // in the middle of an answer
	}
	if err != nil {
		return false, err
	}
	return whole && rest == 0 && !resp.ConnectionClose(), nil
}

// request is a review on its way to a webhook. It borrows all that it points to.
type request struct {
	head    *head
	form    codec.Form
	timeout time.Duration // rounded up to seconds for ?timeout=
	cluster string
	trace   traceFields
	body    []byte
	race    *race // that needs the answer, or not any more; nil: somebody does
}

// head is what all requests to one Target begin with.
type head struct {
	line   string // of the request, up to the value of timeout
	fields string // the rest of the line, and header fields
}

// newHead returns the head of requests to a host and path; authorize is the value
// of the Authorization header, or empty. None of them has control characters.
func newHead(host, path, authorize string) head {
	fields := "s HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: " + userAgent + "\r\n"
	if authorize != "" {
		fields += "Authorization: " + authorize + "\r\n"
	}
	return head{line: "POST " + path + "?timeout=", fields: fields}
}

// write writes the request and flushes. Only the error of the last step is looked
// at: a bufio.Writer keeps the first.
func (q *request) write(w *bufio.Writer) error {
	seconds := (q.timeout + time.Second - 1) / time.Second
	_, _ = w.WriteString(q.head.line)
	_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(seconds), 10))
	_, _ = w.WriteString(q.head.fields)
	_, _ = w.WriteString(formFields(q.form))
	_, _ = w.WriteString("Admission-Cluster: ")
	_, _ = w.WriteString(q.cluster)
	if q.trace.parent != "" {
		_, _ = w.WriteString("\r\ntraceparent: ")
		_, _ = w.WriteString(q.trace.parent)
	}
	if q.trace.state != "" {
		_, _ = w.WriteString("\r\ntracestate: ")
		_, _ = w.WriteString(q.trace.state)
	}
	_, _ = w.WriteString("\r\nContent-Length: ")
	_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(len(q.body)), 10))
	_, _ = w.WriteString("\r\n\r\n")
	_, _ = w.Write(q.body)
	return w.Flush()
}

// formFields are the header fields of a form. A webhook that is sent protobuf may
// answer in it.
func formFields(f codec.Form) string {
	const (
		json     = "Content-Type: application/json\r\nAccept: application/json, */*\r\n"
		protobuf = "Content-Type: application/vnd.kubernetes.protobuf\r\nAccept: application/vnd.kubernetes.protobuf, application/json, */*\r\n"
		gzip     = "Content-Encoding: gzip\r\n"
		zstd     = "Content-Encoding: zstd\r\n"
	)
	isJSON := f.Encoding == codec.JSON
	switch {
	case isJSON && f.Coding == codec.Gzip:
		return json + gzip
	case isJSON && f.Coding == codec.Zstd:
		return json + zstd
	case isJSON:
		return json
	case f.Coding == codec.Gzip:
		return protobuf + gzip
	case f.Coding == codec.Zstd:
		return protobuf + zstd
	}
	return protobuf
}
