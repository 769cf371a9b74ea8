// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// slotWait is how long an attempt waits for one of those under way to end.
	slotWait = 100 * time.Millisecond
	// slotQueue is how many attempts of one holder wait.
	slotQueue = 256
	// slotShare is how many times the free slots a holder may have: one alone takes
	// three quarters of all, the next three quarters of the rest, and so on. Of 512
	// slots it takes five that hoard at once to leave none for a sixth.
	slotShare = 3
)

var errNoSlot = errors.New("no slot became free")

// holder is whose attempt it is: Shadow calls are apart, so that they never keep
// those out that decide.
type holder struct {
	cluster string
	shadow  bool
}

// slotPool lets so many attempts be under way to one Endpoint, and shares them out
// among clusters: one that is freed goes to the waiting holder that has the fewest
// (max-min fairness). It is safe for concurrent use.
type slotPool struct {
	// allowed returns the limit as it is now, never above the one that the pool began
	// with. nil: that one.
	allowed func() int

	mu      sync.Mutex
	limit   int // taken and free together
	free    int // below zero while more are taken than a new limit allows
	waiting int
	holders map[holder]*holding // with a slot or a waiter
	spare   *holding            // that was let go last
}

// holding is what one holder has.
type holding struct {
	taken   int
	waiting []chan struct{} // first come, first served; closed with a slot
}

// acquire waits for a slot, but not beyond a quarter of the time until the deadline.
// It reports false if there was none; otherwise release must be called once.
func (p *slotPool) acquire(who holder, deadline time.Time) bool {
	granted, ok := p.enter(who)
	if granted == nil {
		return ok
	}
	timer := time.NewTimer(min(slotWait, time.Until(deadline)/4))
	defer timer.Stop()
	select {
	case <-granted:
		return true
	case <-timer.C:
		return p.leave(who, granted)
	}
}

// take is acquire for who does not wait: it takes no place in the queue.
func (p *slotPool) take(who holder) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize()
	h := p.holding(who)
	if !p.mayHave(h) {
		p.forget(who, h)
		return false
	}
	p.free--
	h.taken++
	return true
}

// holding returns what who has.
func (p *slotPool) holding(who holder) *holding {
	h := p.holders[who]
	if h == nil {
		h = p.spare
		if p.spare = nil; h == nil {
			h = new(holding)
		}
		p.holders[who] = h
	}
	return h
}

// enter takes a slot (ok), or a place in the queue, or nothing.
func (p *slotPool) enter(who holder) (granted chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize()
	h := p.holding(who)
	switch {
	case p.mayHave(h):
		p.free--
		h.taken++
		return nil, true
	case len(h.waiting) >= slotQueue:
		return nil, false
	}
	granted = make(chan struct{})
	h.waiting = append(h.waiting, granted)
	p.waiting++
	return granted, false
}

// resize follows a limit that has changed: what is taken stays taken.
func (p *slotPool) resize() {
	if p.allowed == nil {
		return
	}
	limit := max(p.allowed(), 1)
	p.free += limit - p.limit
	p.limit = limit
}

// mayHave reports whether a holder may have one more.
func (p *slotPool) mayHave(h *holding) bool { return h.taken < slotShare*p.free }

// leave gives up waiting. It reports true if a slot was granted meanwhile.
func (p *slotPool) leave(who holder, granted chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.holders[who]
	i := slices.Index(h.waiting, granted)
	if i < 0 {
		return true
	}
	h.waiting = slices.Delete(h.waiting, i, i+1)
	p.waiting--
	p.forget(who, h)
	return false
}

// release gives a slot back, to whoever waits.
func (p *slotPool) release(who holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize()
	h := p.holders[who]
	p.free++
	h.taken--
	for p.waiting > 0 {
		next := p.next()
		if next == nil {
			break
		}
		p.free--
		p.waiting--
		next.taken++
		close(next.waiting[0])
		next.waiting = slices.Delete(next.waiting, 0, 1)
	}
	p.forget(who, h)
}

// next returns the holding with a waiter that may have one more and has the fewest.
func (p *slotPool) next() *holding {
	var next *holding
	for _, h := range p.holders {
		if len(h.waiting) > 0 && p.mayHave(h) && (next == nil || h.taken < next.taken) {
			next = h
		}
	}
	return next
}

func (p *slotPool) forget(who holder, h *holding) {
	if h.taken == 0 && len(h.waiting) == 0 {
		delete(p.holders, who)
		*h = holding{waiting: h.waiting}
		p.spare = h
	}
}
