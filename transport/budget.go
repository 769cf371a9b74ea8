// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"time"
)

// The budget of extra attempts. Without one, hedging answers an overload with
// more load: a system that runs well at 70 % collapses.
const (
	budgetShare  = 0.05 // of a cluster's own first attempts in the window
	budgetBurst  = 10   // on top, for all clusters and replicas together, so that a rare call has one too
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

// rolling is what happened in the slots of a window.
type rolling[T any] struct {
	list   [budgetSlots]T
	newest int64 // its number, since the beginning of time
}

// turn empties the slots that have left the window and returns the newest.
func (s *rolling[T]) turn(now time.Time) *T {
	slot := now.UnixNano() / int64(budgetSlot)
	for n := max(s.newest+1, slot-budgetSlots+1); n <= slot; n++ {
		clear(s.list[n%budgetSlots : n%budgetSlots+1])
	}
	s.newest = max(s.newest, slot)
	return s.back(0)
}

// back returns the slot that is n older than the newest.
func (s *rolling[T]) back(n int64) *T { return &s.list[(s.newest-n)%budgetSlots] }

// budget limits the retries and hedges of one cluster to one Target together. It
// is safe for concurrent use.
type budget struct {
	mu    sync.Mutex
	slots rolling[spent]
	burst *burst
}

// spent is what happened in one slot of the window.
type spent struct {
	first, extra int
	beyond       int // those of extra that were beyond the share
	wishes       int // for a hedge
}

// first counts a first attempt.
func (b *budget) first(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots.turn(now).first++
}

// take reports whether one more extra attempt is within the budget, and counts it
// if so.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spend(now, b.slots.turn(now))
}

// hedge is take for a hedge.
func (b *budget) hedge(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.slots.turn(now)
	current.wishes++
	var first, wishes int
	for n := range int64(slowSlots) {
		s := b.slots.back(n)
		first += s.first
		wishes += s.wishes
	}
	if wishes > slowLeast && float64(wishes) > slowShare*float64(first) {
		return false
	}
	return b.spend(now, current)
}

// spend takes one extra attempt, from the cluster's share or else from the burst.
func (b *budget) spend(now time.Time, current *spent) bool {
	var first, within, beyond int
	for n := range int64(budgetSlots) {
		s := b.slots.back(n)
		within += s.extra - s.beyond
		beyond += s.beyond
		if n < budgetSlots-1 {
			first += s.first
		}
	}
	if float64(within+1) > budgetShare*float64(first) {
		if !b.burst.take(now, beyond) {
			return false
		}
		current.beyond++
	}
	current.extra++
	return true
}

// burst is what the clusters may spend on one Target beyond their shares. It is
// safe for concurrent use.
type burst struct {
	// replicas is how many processes spend a burst on the Target. nil: this one alone. It
	// is set before anything is spent.
	replicas func() int

	mu    sync.Mutex
	slots rolling[int]
}

// size is this replica's part of the burst, at least 1.
func (b *burst) size() int {
	if b.replicas == nil {
		return budgetBurst
	}
	return max(budgetBurst/max(b.replicas(), 1), 1)
}

// take takes one for a cluster that has used some already: as long as that is less
// than what is left, so that there is always some left for another.
func (b *burst) take(now time.Time, used int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	current, left := b.slots.turn(now), b.size()
	for n := range int64(budgetSlots) {
		left -= *b.slots.back(n)
	}
	if used >= left {
		return false
	}
	*current++
	return true
}
