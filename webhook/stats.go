// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync/atomic"
	"time"
)

// stats count what a Target's calls did.
type stats struct {
	attempts, retries, hedges, refused, disagreements, misread atomic.Int64
}

// Stats are counts since the Target was made.
type Stats struct {
	Attempts      int64 // all, with Retries and Hedges
	Retries       int64
	Hedges        int64
	BudgetRefused int64 // extra attempts that were not made for want of budget
	Disagreements int64 // twins of one call whose verdicts differ
	Misread       int64 // calls whose webhook did not read what it had said that it reads
}

// Stats returns the counts as of now.
func (t *Target) Stats() Stats {
	return Stats{
		Attempts:      t.stats.attempts.Load(),
		Retries:       t.stats.retries.Load(),
		Hedges:        t.stats.hedges.Load(),
		BudgetRefused: t.stats.refused.Load(),
		Disagreements: t.stats.disagreements.Load(),
		Misread:       t.stats.misread.Load(),
	}
}

// spend takes an extra attempt from the budget by take, one of its methods. There
// is none while the webhook asks to be spared. spent reports that the budget was.
func (t *Target) spend(take func(*budget, time.Time) bool) (ok, spent bool) {
	now := time.Now()
	if now.UnixNano() < t.spared.Load() {
		return false, false
	}
	if !take(&t.budget, now) {
		t.stats.refused.Add(1)
		return false, true
	}
	return true, false
}

// pause keeps extra attempts away until then.
func (t *Target) pause(until time.Time) {
	for {
		was := t.spared.Load()
		if was >= until.UnixNano() || t.spared.CompareAndSwap(was, until.UnixNano()) {
			return
		}
	}
}
