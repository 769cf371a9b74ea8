// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/share"
)

// Queue is an io.Writer in front of a slow one: Write never waits. Lines beyond
// its bound are given up and counted. Lines are JSON objects of slog: those that
// belong to a cluster share the Queue fairly, and lines below level WARN take at most
// half of it, so that however much one cluster is denied, what failed open in another
// is told. It is safe for concurrent use.
type Queue struct {
	out     io.Writer
	lines   chan []byte
	shares  *share.Pool
	reserve int64 // for lines of level WARN and above
	dropped atomic.Int64
	done    chan struct{} // closed when the writer is through

	mu     sync.RWMutex // held for writing by Close alone
	closed bool
}

// NewQueue returns a Queue for so many lines, and starts to write them to out.
// Who makes it closes it.
func NewQueue(out io.Writer, lines int) *Queue {
	q := &Queue{
		out:     out,
		lines:   make(chan []byte, lines),
		shares:  share.NewPool(int64(lines)),
		reserve: int64(lines) / 2,
		done:    make(chan struct{}),
	}
	go q.run()
	return q
}

// Write takes a copy of a line. It never fails.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	reserve := q.reserve
	if isWarning(line) {
		reserve = 0
	}
	if q.closed || !q.shares.Take(clusterOf(line), 1, reserve) {
		q.dropped.Add(1)
		return len(line), nil
	}
	q.lines <- bytes.Clone(line) // there is room: nothing is written that was not taken
	return len(line), nil
}

// clusterOf returns the cluster that a line is about; none: the process. Quotes
// inside of a value are escaped, so no value can look like it.
func clusterOf(line []byte) string {
	_, after, ok := bytes.Cut(line, []byte(`,"cluster":"`))
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(after, []byte(`"`))
	return string(name)
}

// isWarning reports whether a line is of level WARN or above. The level stands
// before everything that a request brings.
func isWarning(line []byte) bool {
	_, after, _ := bytes.Cut(line, []byte(`"level":"`))
	return bytes.HasPrefix(after, []byte("WARN")) || bytes.HasPrefix(after, []byte("ERROR"))
}

// Dropped returns how many lines were given up.
func (q *Queue) Dropped() int64 { return q.dropped.Load() }

// run writes until Close. What cannot be written is given up.
func (q *Queue) run() {
	defer close(q.done)
	for line := range q.lines {
		q.shares.Give(clusterOf(line), 1)
		if _, err := q.out.Write(line); err != nil {
			q.dropped.Add(1)
		}
	}
}

// CloseTimeout bounds how long a process that ends waits for a sink.
const CloseTimeout = time.Second

// Close takes no more lines and waits until those in the Queue are written, but
// not for a sink that is blocked.
func (q *Queue) Close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.lines)
	}
	q.mu.Unlock()
	timer := time.NewTimer(CloseTimeout)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}
