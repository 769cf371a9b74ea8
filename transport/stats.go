// SPDX-License-Identifier: Apache-2.0

package transport

import "sync/atomic"

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
