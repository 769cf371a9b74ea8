// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
)

// Skip is a webhook whose rules select the resource and that was not asked all
// the same. It borrows nothing from the Review.
type Skip struct {
	Webhook   *chain.Entry
	Round     int // 1 for a reinvocation
	Reason    match.Reason
	Condition string // the matchCondition that decided, if one did
}

// skip keeps why the webhook was not asked, if somebody wants to know.
func (a *admission) skip(w *chain.Entry, round int, m match.Decision) {
	if a.keepSkips {
		a.skips = append(a.skips, Skip{Webhook: w, Round: round, Reason: m.Reason, Condition: m.Condition})
	}
}
