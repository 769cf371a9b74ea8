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
	budgetSlots  = 10
)

// budget limits the retries and hedges of one Target together. It is safe for
// concurrent use.
type budget struct {
	mu    sync.Mutex
	slots [budgetSlots]struct{ first, extra int }
	slot  int64 // number of the newest slot, since the beginning of time
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
	current := b.turn(now)
	var first, extra int
	for _, s := range b.slots {
		first += s.first
		extra += s.extra
	}
	if float64(extra+1) > budgetShare*float64(first)+budgetBurst {
		return false
	}
	current.extra++
	return true
}

// turn empties the slots that have left the window and returns the newest.
func (b *budget) turn(now time.Time) *struct{ first, extra int } {
	slot := now.UnixNano() / int64(budgetWindow/budgetSlots)
	for n := max(b.slot+1, slot-budgetSlots+1); n <= slot; n++ {
		b.slots[n%budgetSlots] = struct{ first, extra int }{}
	}
	b.slot = max(b.slot, slot)
	return &b.slots[b.slot%budgetSlots]
}
