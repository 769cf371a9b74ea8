// SPDX-License-Identifier: Apache-2.0

package lint

import "fmt"

// Bounds of timeouts, in seconds. The first two are Gardener's; requests to an API
// server have 34 s for admission altogether.
const (
	longTimeout   = 15
	leaseTimeout  = 3
	longMutations = 30
)

// timeouts is W5.
func (l *linter) timeouts() {
	sum, mutating := int32(0), 0
	l.each(func(w *webhook) {
		seconds := w.timeout()
		at := w.at.Child("timeoutSeconds")
		switch {
		case seconds > longTimeout:
			l.report(w, Warning, at, fmt.Sprint(seconds), fmt.Sprintf("is longer than %d s: controllers give up before, and write again", longTimeout))
		case seconds > leaseTimeout && l.selectsLeases(w):
			l.report(w, Warning, at, fmt.Sprint(seconds), fmt.Sprintf("is longer than %d s, and the webhook selects leases, whose holders give up after 5 s", leaseTimeout))
		}
		if w.of.Mutating {
			sum += seconds
			mutating++
		}
	})
	if sum > longMutations {
		l.reportAll(-1, Warning, fmt.Sprintf("%d s", sum), fmt.Sprintf("is the sum of the timeouts of %d mutating webhooks, which are called one after the other: an API request ends after 34 s, whatever their failurePolicy", mutating))
	}
}

// timeout is the webhook's, in seconds.
func (w *webhook) timeout() int32 {
	if w.of.Beta {
		return or(w.TimeoutSeconds, 30)
	}
	return or(w.TimeoutSeconds, 10)
}

func (l *linter) selectsLeases(w *webhook) bool {
	for i := range w.Rules {
		if l.wantsLeases(w, i) {
			return true
		}
	}
	return false
}
