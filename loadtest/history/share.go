// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"math"
	"slices"
)

// shares checks the faults that may make a part of the calls fail only, give or
// take three standard deviations.
func (m *model) shares(calls []Call) []Finding {
	var found []Finding
	for i := range m.world.Faults {
		f := &m.world.Faults[i]
		if f.Share == 0 {
			continue
		}
		affected, failed := m.affected(f, calls)
		n := float64(affected)
		if noise := 3 * math.Sqrt(n*f.Share*(1-f.Share)); float64(failed) > n*f.Share+noise {
			text := fmt.Sprintf("%d of %d calls failed, at most %.1f %% may (%s, %v to %v)", failed, affected, 100*f.Share, f.Webhook, f.From, f.Until)
			found = append(found, Finding{Rule: FailureShare, Text: text})
		}
	}
	return found
}

// affected counts the calls that were made within f, and those of them that a
// failure of its webhook is reported for.
func (m *model) affected(f *Fault, calls []Call) (affected, failed int) {
	for i := range calls {
		c := &calls[i]
		if c.Exempt || c.Err != "" || !f.spans(c) || !m.aims(f, c) {
			continue
		}
		affected++
		if f.named(c) {
			failed++
		}
	}
	return affected, failed
}

// aims reports whether c is for a webhook that f is about.
func (m *model) aims(f *Fault, c *Call) bool {
	for _, s := range m.snapshots[c.UID] {
		for _, w := range s.wanted(c) {
			if f.hits(w, c) {
				return true
			}
		}
	}
	return false
}

// named reports whether the answer says that a webhook of f failed as f makes it.
func (f *Fault) named(c *Call) bool {
	said := c.testimony()
	for _, cl := range append(said.lines, said.rest...) {
		if slices.Contains(f.Causes, cl.cause) && (f.Webhook == "" || f.Webhook == cl.webhook) {
			return true
		}
	}
	return false
}
