// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sort"
	"sync"
	"time"
)

const (
	// beat is the time between two beats of a pulse.
	beat = time.Millisecond
	// punctual is how late a beat is where nothing is wrong.
	punctual = time.Millisecond
	// atLast is how long before the end of a call it matters for a deadline.
	atLast = 500 * time.Millisecond
)

// pulse measures for how long this process did not run although it wanted to: a
// goroutine that is due every beat, and how late it comes. On a machine that is
// shared a caller may see an answer long after it was there.
type pulse struct {
	start time.Time

	mu    sync.Mutex
	due   time.Duration // when the beat to come should be there
	still []stall       // ascending
}

// stall is a time for which the process stood still.
type stall struct{ from, until time.Duration }

func newPulse(start time.Time) *pulse { return &pulse{start: start, due: time.Since(start)} }

// Run beats until ctx ends.
func (p *pulse) Run(ctx context.Context) {
	for ctx.Err() == nil {
		p.note(time.Since(p.start))
		time.Sleep(beat)
	}
}

// note is the beat that was due, at the time at which it came.
func (p *pulse) note(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now > p.due+punctual {
		p.still = append(p.still, stall{p.due, now})
	}
	p.due = now + beat
}

// stood returns for how long the process did not run between two times, the second
// of which is now.
func (p *pulse) stood(from, now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum time.Duration
	if now > p.due+punctual { // it has not come yet
		sum = now - max(p.due, from)
	}
	first := sort.Search(len(p.still), func(i int) bool { return p.still[i].until > from })
	for _, s := range p.still[first:] {
		sum += max(0, min(s.until, now)-max(s.from, from))
	}
	return sum
}
