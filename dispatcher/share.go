// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// leastTime is what a call needs to have any prospect: with less left, the
// webhook is not asked in vain (F23).
const leastTime = 5 * time.Millisecond

// hearingTime is kept between the end of a call and that of the admission, so that
// what a call tells at its end, such as a denial that it has kept, is still heard.
const hearingTime = 10 * time.Millisecond

// until returns when a call of w that begins now must be over, if following
// webhooks are to be called after it: at the end of its own timeout, or earlier,
// so that those get their share of the admission's time. full is how long it might
// take if the caller had left it the time.
//
// A webhook that is ignored when it fails must not starve one that is not
// (kubernetes#128162): where others follow, patience with it is bounded too.
func (a *admission) until(w *chain.Entry, following int, impatience time.Duration) (deadline time.Time, full time.Duration) {
	now := time.Now()
	left := a.Deadline.Sub(now)
	left -= min(hearingTime, left/10)
	full = w.Timeout
	if following > 0 && w.FailurePolicy == chain.Ignore {
		full = min(full, impatience)
	}
	return now.Add(min(full, left-reserve(left, following))), full
}

// reserve is what is kept of the time that is left for webhooks to be called
// later: a tenth for each, but never more than half.
func reserve(left time.Duration, following int) time.Duration {
	return min(left/2, left/10*time.Duration(following))
}
