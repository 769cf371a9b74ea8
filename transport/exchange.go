// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// exchange is one HTTP try, which ends by the call's deadline. Nothing is sent once
// nobody needs the answer.
func exchange(ctx context.Context, r *race, chosen *choice) result {
	call := &r.Call
	e, who := chosen.endpoint, holder{call.Cluster, call.Shadow}
	r.adopt(e)
	if !e.slots.acquire(who, call.Deadline) {
		return failed(errNoSlot, call, 0)
	}
	defer e.slots.release(who)
	left := time.Until(call.Deadline)
	if left <= 0 {
		return unsent(errNoTimeLeft)
	}
	payload, err := call.Message.Payload(chosen.plain)
	if err != nil {
		return result{kind: breaker.NotSent, err: err}
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	req := requests.Get().(*request)
	*req = request{head: &call.Target.head, payload: payload, timeout: left, cluster: call.Cluster, trace: tracecontext.Inject(ctx), race: r}
	err = e.roundTrip(req, resp, &chosen.ticket, call.Deadline, chosen.fresh)
	*req = request{} // it has borrowed
	requests.Put(req)
	switch {
	case err == nil:
		return read(replyOf(resp, e.limit), call)
	case errors.Is(err, errNotNeeded):
		return unsent(err)
	}
	return failed(err, call, left)
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

// roundTrip sends one request and reads its answer, by the deadline. With fresh it
// goes over a connection that is new; idle ones are given up. The ticket learns
// that there is a connection.
//
// The uid of a call is the same in all its attempts, so it cannot tell a stale
// answer. A connection that has anything to read before the request
// is sent, or after the answer has been read, is closed and not used again. That
// also finds most connections that the webhook closed while they were idle.
func (e *Endpoint) roundTrip(req *request, resp *fasthttp.Response, ticket *breaker.Ticket, deadline time.Time, fresh bool) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fasthttp.ErrTimeout
		}
		c := e.connections.take()
		if c == nil {
			var err error
			if c, err = e.open(left); err != nil {
				return err
			}
		}
		if !c.wake() || c.served && fresh {
			e.drop(c)
			continue
		}
		ticket.Reached()
		reused, written := c.served, c.records.written
		clean, err := true, errNotNeeded // as to connect, or to wait for that, took too long
		if req.race == nil || req.race.isNeeded() {
			clean, err = talk(c, req, resp, e.limit, deadline)
		}
		e.rest(c, clean, time.Now())
		if err != nil {
			var silent *silentError
			if errors.As(err, &silent) {
				silent.reused = reused
				silent.unwritten = c.records.written == written
			}
		}
		return err
	}
}

// The buffers of exchanges under way.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}
)

// talk writes req and reads resp within the deadline. clean tells whether the
// connection can carry another request. A webhook may answer, and close, before
// it has read the whole review: its verdict stands, as it does with net/http.
func talk(c net.Conn, req *request, resp *fasthttp.Response, limit int, deadline time.Time) (clean bool, err error) {
	if err := c.SetDeadline(deadline); err != nil {
		return false, err
	}
	w := writers.Get().(*bufio.Writer)
	w.Reset(c)
	err = req.write(w)
	w.Reset(nil)
	writers.Put(w)
	if isTimeout(err) {
		return false, err
	}
	whole := err == nil
	r := readers.Get().(*bufio.Reader)
	r.Reset(c)
	defer func() {
		r.Reset(nil)
		readers.Put(r)
	}()
	if _, err := r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = fasthttp.ErrConnectionClosed
		}
		return false, &silentError{err: err}
	}
	rest, err := readAnswer(r, c, resp, limit, deadline)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // in the middle of an answer
	}
	if err != nil {
		return false, err
	}
	return whole && rest == 0 && !resp.ConnectionClose(), nil
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
