// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"time"
)

// extra checks the budget of every webhook: in no window may there be more
// extra attempts than its share of the first ones, and the burst.
func (m *model) extra(tries []Attempt) []Finding {
	var found []Finding
	for _, webhook := range webhooksOf(tries) {
		if f, over := m.overspent(webhook, tries); over {
			found = append(found, f)
		}
	}
	return found
}

func webhooksOf(tries []Attempt) []string {
	var all []string
	for i := range tries {
		all = append(all, tries[i].Webhook)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// overspent reports the first window in which the webhook's budget was exceeded.
func (m *model) overspent(webhook string, tries []Attempt) (Finding, bool) {
	first, again := m.arrivals(webhook, tries)
	limits := m.world.Limits
	for i, end := range again {
		begin := end - limits.ExtraWindow
		extra := i + 1 - since(again, begin)
		calls := since(first, end+1) - since(first, begin)
		if allowed := limits.ExtraShare*float64(calls) + float64(limits.ExtraBurst); float64(extra) > allowed {
			text := fmt.Sprintf("%s: %d extra attempts for %d calls within %v before %v", webhook, extra, calls, limits.ExtraWindow, end)
			return Finding{Rule: ExtraAttempts, Text: text}, true
		}
	}
	return Finding{}, false
}

// arrivals returns when the first and the extra attempts came, ascending.
func (m *model) arrivals(webhook string, tries []Attempt) (first, again []time.Duration) {
	for i := range tries {
		a := &tries[i]
		switch {
		case a.Webhook != webhook:
		case m.attempts[a.UID].of(webhook)[0] == a:
			first = append(first, a.Arrived)
		default:
			again = append(again, a.Arrived)
		}
	}
	slices.Sort(first)
	slices.Sort(again)
	return first, again
}

// since returns the index of the first of times that is not before t.
func since(times []time.Duration, t time.Duration) int {
	i, _ := slices.BinarySearch(times, t)
	return i
}
