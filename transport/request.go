// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"strconv"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

const userAgent = "admission-dispatcher"

// request is a Payload on its way to a Target. It borrows all that it points to.
type request struct {
	head    *head
	payload Payload
	timeout time.Duration // rounded up to seconds for ?timeout=
	cluster string
	trace   tracecontext.Fields // what the webhook is told of the trace that it takes part in
}

var requests = sync.Pool{New: func() any { return new(request) }}

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
	_, _ = w.WriteString(q.payload.Fields)
	_, _ = w.WriteString("Admission-Cluster: ")
	_, _ = w.WriteString(q.cluster)
	if len(q.trace.Parent) > 0 {
		_, _ = w.WriteString("\r\ntraceparent: ")
		_, _ = w.Write(q.trace.Parent)
	}
	if len(q.trace.State) > 0 {
		_, _ = w.WriteString("\r\ntracestate: ")
		_, _ = w.Write(q.trace.State)
	}
	_, _ = w.WriteString("\r\nContent-Length: ")
	_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(len(q.payload.Body)), 10))
	_, _ = w.WriteString("\r\n\r\n")
	_, _ = w.Write(q.payload.Body)
	return w.Flush()
}
