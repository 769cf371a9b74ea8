// SPDX-License-Identifier: Apache-2.0

package transport

import "sync"

// maxIdleWorkers is how many goroutines wait for attempts to come; those that end
// an attempt while so many wait end with it.
const maxIdleWorkers = 256

// workers run attempts. Their goroutines are kept from one attempt to the next: a
// new one would grow its stack anew each time, down to where TLS reads.
type workers struct {
	mu     sync.Mutex
	idle   []chan work // of goroutines that wait, the one that worked last at the end
	closed bool
	wg     sync.WaitGroup
}

// work is a race's first step.
type work struct {
	race  *race
	first step
}

// run has w done on a goroutine that waits, or on a new one.
func (p *workers) run(w work) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		jobs := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		jobs <- w
		return
	}
	p.mu.Unlock()
	jobs := make(chan work, 1)
	jobs <- w
	p.wg.Go(func() { p.work(jobs) })
}

func (p *workers) work(jobs chan work) {
	for w := range jobs {
		w.race.follow(w.first)
		if !p.rest(jobs) {
			return
		}
	}
}

// rest puts a goroutine among those that wait; it reports false if it is not
// needed.
func (p *workers) rest(jobs chan work) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdleWorkers {
		return false
	}
	p.idle = append(p.idle, jobs)
	return true
}

// close ends the goroutines that wait, and waits for all to end.
func (p *workers) close() {
	p.mu.Lock()
	p.closed = true
	for _, jobs := range p.idle {
		close(jobs)
	}
	p.idle = nil
	p.mu.Unlock()
	p.wg.Wait()
}
