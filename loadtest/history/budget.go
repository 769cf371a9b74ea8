// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// arrivals are when the attempts of one webhook came, ascending.
type arrivals struct {
	first []time.Duration // of an admission
	extra []time.Duration // hedges and retries
}

// extra checks the budget of every webhook: in no window may there be more
// extra attempts than its share of the first ones, and the burst.
func (m *model) extra(tries []Attempt) []Finding {
	var found []Finding
	all := m.arrivals(tries)
	for _, webhook := range slices.Sorted(maps.Keys(all)) {
		if text := all[webhook].overspent(m.world.Limits); text != "" {
			found = append(found, Finding{Rule: ExtraAttempts, Text: webhook + ": " + text})
		}
	}
	return found
}

// arrivals sorts the attempts by webhook.
func (m *model) arrivals(tries []Attempt) map[string]*arrivals {
	all := map[string]*arrivals{}
	for i := range tries {
		a := &tries[i]
		of := all[a.Webhook]
		if of == nil {
			of = &arrivals{}
			all[a.Webhook] = of
		}
		if m.attempts[a.UID].of(a.Webhook)[0] == a {
			of.first = append(of.first, a.Arrived)
		} else {
			of.extra = append(of.extra, a.Arrived)
		}
	}
	for _, of := range all {
		slices.Sort(of.first)
		slices.Sort(of.extra)
	}
	return all
}

// overspent describes the first window with too many extra attempts; empty if
// there is none.
func (a *arrivals) overspent(limits Limits) string {
	for i, end := range a.extra {
		begin := end - limits.ExtraWindow
		extra := i + 1 - before(a.extra, begin)
		first := before(a.first, end+1) - before(a.first, begin)
		if float64(extra) > limits.ExtraShare*float64(first)+float64(limits.ExtraBurst) {
			return fmt.Sprintf("%d extra attempts, %d first ones within %v before %v", extra, first, limits.ExtraWindow, end)
		}
	}
	return ""
}

// before counts the times before t.
func before(times []time.Duration, t time.Duration) int {
	n, _ := slices.BinarySearch(times, t)
	return n
}
