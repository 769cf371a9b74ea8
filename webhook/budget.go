// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"
)

// The budget of extra attempts. Without one, hedging answers an overload with
// more load: a system that runs well at 70 % collapses.
const (
	budgetShare  = 0.05 // of the first attempts in the window
	budgetBurst  = 10   // on top, so that a rare call has one too
	budgetWindow = 10 * time.Second
	// There is a slot more than the window has: extra attempts count in all of
	// them, first ones in those that are surely within. So the share holds for any
	// 10 s.
	budgetSlots = 11
	budgetSlot  = budgetWindow / (budgetSlots - 1)

	// Where more calls than this share want a hedge at a time, it is the webhook
	// that is slow and not an answer: more load would make it slower.
	slowShare = 0.2
	slowSlots = 2  // that are looked at
	slowLeast = 10 // wishes below which their share says nothing
)

// budget limits the retries and hedges of one Target together. It is safe for
// concurrent use.
type budget struct {
	mu    sync.Mutex
	slots [budgetSlots]spent
	slot  int64 // number of the newest slot, since the beginning of time
}

// spent is what happened in one slot of the window.
type spent struct {
	first, extra int
	wishes       int // for a hedge
}

// first counts a first attempt.
func (b *budget) first(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now).first++
}

// take reports whether one more extra attempt is within the budget, and counts it
// if so.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spend(b.turn(now))
}

// hedge is take for a hedge.
func (b *budget) hedge(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.turn(now)
	current.wishes++
	var first, wishes int
	for n := range int64(slowSlots) {
		s := b.slots[(b.slot-n)%budgetSlots]
		first += s.first
		wishes += s.wishes
	}
	if wishes > slowLeast && float64(wishes) > slowShare*float64(first) {
		return false
	}
	return b.spend(current)
}

// spend takes one extra attempt, if there is one.
func (b *budget) spend(current *spent) bool {
	var first, extra int
	for n := range int64(budgetSlots) {
		s := b.slots[(b.slot-n)%budgetSlots]
		extra += s.extra
		if n < budgetSlots-1 {
			first += s.first
		}
	}
	if float64(extra+1) > budgetShare*float64(first)+budgetBurst {
		return false
	}
	current.extra++
	return true
}

// turn empties the slots that have left the window and returns the newest.
func (b *budget) turn(now time.Time) *spent {
	slot := now.UnixNano() / int64(budgetSlot)
	for n := max(b.slot+1, slot-budgetSlots+1); n <= slot; n++ {
		b.slots[n%budgetSlots] = spent{}
	}
	b.slot = max(b.slot, slot)
	return &b.slots[b.slot%budgetSlots]
}
