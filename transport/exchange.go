// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// try is one attempt on its way. It belongs to one goroutine at a time: who asked makes
// the first attempt as far as nothing is in its way, and a worker the rest, and all others.
type try struct {
	choice
	begin time.Time
	ctx   context.Context // of the span
	span  attemptSpan

	slot    bool          // it has one of the Endpoint's
	left    time.Duration // until the call's deadline, when the request was about to be sent
	conn    *conn
	reused  bool  // the connection was
	written int64 // bytes that it had carried before
	sent    bool  // as far as the connection took it at once
	whole   bool  // no write has failed
	reader  *bufio.Reader
	late    bool      // its time was up when its answer was found
	ended   time.Time // when the answer had come, or was given up
}

// extent is how far an attempt is made.
type extent uint8

const (
	toSend   extent = iota // until the request is sent, if nothing has to wait for that
	toListen               // until a plain answer is read, by the race's due
	toEnd                  // by the call's deadline
)

// errWaits says that a try is for a worker to go on with: it would have to wait, or is
// made as far as it was to be.
var errWaits = errors.New("it has to wait")

// exchange is one HTTP try, as far as it is to be made: ended is false where there is
// more of it to be made. It ends by the call's deadline. Nothing is sent once nobody
// needs the answer.
func exchange(r *race, t *try, how extent) (end result, ended bool) {
	var err error
	if !t.sent {
		err = t.send(r, how)
	}
	if err == nil {
		end, err = t.receive(r, how)
	}
	switch {
	case err == nil:
		return end, true
	case errors.Is(err, errWaits):
		return result{}, false
	}
	t.ended = time.Now()
	return failed(err, &r.Call, t.left), true
}

// send sends the request. Without waiting (toSend) that is possible where a slot is free
// and a connection idle; what the connection does not take at once is written by receive,
// to the end.
func (t *try) send(r *race, how extent) error {
	call, e := &r.Call, t.endpoint
	r.adopt(e)
	who := holder{call.Cluster, call.Shadow}
	switch {
	case t.slot: // since toSend, which had no connection
	case how == toSend && !e.slots.take(who):
		return errWaits
	case how != toSend && !e.slots.acquire(who, call.Deadline):
		return errNoSlot
	}
	t.slot = true
	now := t.begin
	if how == toEnd { // after a wait, perhaps
		now = time.Now()
	}
	if t.left = call.Deadline.Sub(now); t.left <= 0 {
		return errNoTimeLeft
	}
	payload, err := call.Message.Payload(t.plain)
	if err != nil {
		return err
	}
	if t.conn, err = t.connection(call.Deadline, how); err != nil {
		return err
	}
	t.ticket.Reached()
	t.reused, t.written = t.conn.served, t.conn.records.written
	if !r.isNeeded() { // as to connect, or to wait for that, took too long
		e.rest(t.conn, true, time.Now())
		t.conn = nil
		return errNotNeeded
	}
	until := call.Deadline
	if t.conn.records.hurried = how == toSend; how == toSend {
		until = r.due
	}
	if err := t.conn.SetDeadline(until); err != nil {
		return err
	}
	t.sent = true
	q := requests.Get().(*request)
	*q = request{head: &call.Target.head, payload: payload, timeout: t.left, cluster: call.Cluster, trace: tracecontext.Inject(t.ctx)}
	w := writers.Get().(*bufio.Writer)
	w.Reset(t.conn)
	err = q.write(w)
	w.Reset(nil)
	writers.Put(w)
	*q = request{} // it has borrowed
	requests.Put(q)
	t.whole = err == nil
	if isTimeout(err) {
		return err
	}
	return nil // what was sent may be answered
}

// connection returns one that is good for a request, to send it only if one is idle.
//
// The uid of a call is the same in all its attempts, so it cannot tell a stale
// answer. A connection that has anything to read before the request
// is sent, or after the answer has been read, is closed and not used again. That
// also finds most connections that the webhook closed while they were idle.
func (t *try) connection(deadline time.Time, how extent) (*conn, error) {
	e := t.endpoint
	for {
		c := e.connections.take()
		if c == nil {
			if how == toSend {
				return nil, errWaits
			}
			left := time.Until(deadline)
			if left <= 0 {
				return nil, fasthttp.ErrTimeout
			}
			var err error
			if c, err = e.open(left); err != nil {
				return nil, err
			}
		}
		if c.wake() && !(c.served && t.fresh) {
			return c, nil
		}
		e.drop(c)
	}
}

// The buffers of exchanges under way.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}
)

// receive reads the answer, after what send has not written yet. A webhook may answer,
// and close, before it has read the whole review: its verdict stands, as it does with
// net/http.
func (t *try) receive(r *race, how extent) (result, error) {
	records := t.conn.records
	switch {
	case how == toSend, how == toListen && len(records.unsent) > 0:
		return result{}, errWaits
	case how == toEnd && records.hurried:
		if err := t.conn.SetDeadline(r.Deadline); err != nil {
			return result{}, err
		}
		t.late = false
		err := records.flush()
		if isTimeout(err) {
			return result{}, err
		}
		t.whole = t.whole && err == nil
	}
	if t.reader == nil {
		t.reader = readers.Get().(*bufio.Reader)
		t.reader.Reset(t.conn)
	}
	reply, length, err := t.listen(how)
	if err != nil {
		return result{}, err
	}
	if length > 0 {
		t.ended = time.Now()
		end := read(reply, &r.Call)
		t.leave(t.whole && t.reader.Buffered() == length)
		return end, nil
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	rest, err := readAnswer(t.reader, t.conn, resp, t.endpoint.limit, r.Deadline)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // in the middle of an answer
	}
	if err != nil {
		return result{}, err
	}
	t.ended = time.Now()
	t.leave(t.whole && rest == 0 && !resp.ConnectionClose())
	return read(replyOf(resp, t.endpoint.limit), &r.Call), nil
}

// listen waits for an answer. If it is plain, reply is the answer, of length bytes, which
// stay in the reader. Otherwise length is 0, and its beginning is left in the reader: it is
// for fasthttp (toEnd, from the first byte on), or for a worker (errWaits).
func (t *try) listen(how extent) (reply Reply, length int, err error) {
	for least := 1; ; least = length {
		_, err := t.reader.Peek(least)
		if t.isThere(err) {
			_, err = t.reader.Peek(least)
		}
		if err != nil {
			return Reply{}, 0, t.unheard(err, how)
		}
		head, _ := t.reader.Peek(t.reader.Buffered())
		var is look
		reply, length, is = plainReply(head, t.endpoint.limit)
		switch {
		case is == whole:
			return reply, length, nil
		case how == toEnd:
			return Reply{}, 0, nil
		case is == other, length > t.reader.Size():
			return Reply{}, 0, errWaits
		}
	}
}

// lateTime is how long an answer may take to read that has come by the deadline, which
// has passed. It is less than who waits for it keeps in hand.
const lateTime = 5 * time.Millisecond

// isThere reports whether an answer has come although time is up: it may have been there in
// time, while this process stood still, or who asked waited for others. Once, it gets
// lateTime to be read.
func (t *try) isThere(err error) bool {
	if t.late || !isTimeout(err) || !t.conn.readable() {
		return false
	}
	t.late = true
	return t.conn.SetReadDeadline(time.Now().Add(lateTime)) == nil
}

// unheard is the error of a try where err has come instead of the answer, or of the rest
// of it. What is awaited and late, or cut off, is a worker's to read.
func (t *try) unheard(err error, how extent) error {
	if how == toListen && (isTimeout(err) || t.reader.Buffered() > 0) {
		return errWaits
	}
	if errors.Is(err, io.EOF) {
		err = fasthttp.ErrConnectionClosed
	}
	return &silentError{err: err, reused: t.reused, unwritten: t.conn.records.written == t.written}
}

// leave gives the connection back. clean: it can carry another request.
func (t *try) leave(clean bool) {
	t.endpoint.rest(t.conn, clean, t.ended)
	t.conn = nil
}

// close gives back what a try still has when it has ended, however that was.
func (t *try) close(call *Call) {
	if t.reader != nil {
		t.reader.Reset(nil)
		readers.Put(t.reader)
		t.reader = nil
	}
	if t.conn != nil {
		t.endpoint.drop(t.conn)
		t.conn = nil
	}
	if t.slot {
		t.endpoint.slots.release(holder{call.Cluster, call.Shadow})
		t.slot = false
	}
}
