// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Progress is what has come of a run so far. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex
	counts Summary
	lately *hdrhistogram.Histogram // of the calls since the last Line
}

// NewProgress returns a Progress without calls.
func NewProgress() *Progress {
	return &Progress{lately: hdrhistogram.New(1, (5 * time.Minute).Microseconds(), 3)}
}

// Add counts a call; it is what Config.Observe wants.
func (p *Progress) Add(c *history.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Calls++
	p.counts.count(c)
	if _, lost := isLost(c); lost {
		return
	}
	_ = p.lately.RecordValue((c.Done - c.Intended).Microseconds()) // calls end before that
}

// Line says how far the run is, with the latencies since the Line before.
func (p *Progress) Line(elapsed, whole time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.lately.Reset()
	s, at := &p.counts, func(q float64) Seconds {
		return Seconds(time.Duration(p.lately.ValueAtQuantile(q)) * time.Microsecond)
	}
	return fmt.Sprintf("%v of %v: %d calls, %d allowed, %d denied, %d failed, %d fail open, %d shed, %d lost; lately p50 %v, p99 %v",
		elapsed.Round(time.Second), whole, s.Calls, s.Allowed, s.Denied, s.Failed, s.FailOpen, s.Shed, s.Lost, at(50), at(99))
}
