// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is an io.Writer in front of a slow one: Write never waits. Lines beyond
// its bound are given up and counted. It is safe for concurrent use.
type Queue struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	done    chan struct{} // closed when the writer is through

	mu     sync.RWMutex // held for writing by Close alone
	closed bool
}

// NewQueue returns a Queue for so many lines, and starts to write them to out.
// Who makes it closes it.
func NewQueue(out io.Writer, lines int) *Queue {
	q := &Queue{out: out, lines: make(chan []byte, lines), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes a copy of a line. It never fails.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		q.dropped.Add(1)
		return len(line), nil
	}
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

// Dropped returns how many lines were given up.
func (q *Queue) Dropped() int64 { return q.dropped.Load() }

// run writes until Close. What cannot be written is given up.
func (q *Queue) run() {
	defer close(q.done)
	for line := range q.lines {
		if _, err := q.out.Write(line); err != nil {
			q.dropped.Add(1)
		}
	}
}

// closeTimeout bounds how long a process that ends waits for a sink.
const closeTimeout = time.Second

// Close takes no more lines and waits until those in the Queue are written, but
// not for a sink that is blocked.
func (q *Queue) Close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.lines)
	}
	q.mu.Unlock()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}
