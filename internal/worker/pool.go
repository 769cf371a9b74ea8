// SPDX-License-Identifier: Apache-2.0

// Package worker keeps goroutines from one piece of work to the next: a new one would
// grow its stack anew each time, down to where TLS reads.
package worker

import "sync"

// Pool does work on goroutines that it keeps. Do and Idle do not change after the
// first Run. It must be closed.
type Pool[T any] struct {
	Do   func(T)
	Idle int // how many goroutines wait for work; those that are done beyond that end

	mu     sync.Mutex
	idle   []chan T // of goroutines that wait, the one that worked last at the end
	closed bool
	wg     sync.WaitGroup
}

// Run has w done on a goroutine that waits, or on a new one. It does not block.
func (p *Pool[T]) Run(w T) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		jobs := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		jobs <- w
		return
	}
	p.mu.Unlock()
	jobs := make(chan T, 1)
	jobs <- w
	p.wg.Go(func() { p.work(jobs) })
}

func (p *Pool[T]) work(jobs chan T) {
	for w := range jobs {
		p.Do(w)
		if !p.rest(jobs) {
			return
		}
	}
}

// rest puts a goroutine among those that wait; it reports false if it is not
// needed.
func (p *Pool[T]) rest(jobs chan T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.Idle {
		return false
	}
	p.idle = append(p.idle, jobs)
	return true
}

// Close ends the goroutines that wait, and returns when no work is done any more. It
// must not race with Run. It may be called again.
func (p *Pool[T]) Close() {
	p.mu.Lock()
	p.closed = true
	for _, jobs := range p.idle {
		close(jobs)
	}
	p.idle = nil
	p.mu.Unlock()
	p.wg.Wait()
}
