// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// gate lets forced attempts of one cluster through: one at a time, given up
// after ProbeTimeout, and none before ForcedInterval has passed since the last.
type gate struct {
	settings *Settings
	number   uint64 // of the last one let through; 0: none
	busy     bool
	last     time.Time
}

// enter lets an attempt through, which has a number.
func (g *gate) enter(now time.Time, number uint64) bool {
	wait := g.settings.ForcedInterval
	if g.busy {
		wait = max(wait, g.settings.ProbeTimeout)
	}
	if g.number > 0 && now.Sub(g.last) < wait {
		return false
	}
	g.number, g.busy, g.last = number, true, now
	return true
}

// leave ends an attempt. One that was given up has no effect.
func (g *gate) leave(number uint64) {
	if number == g.number {
		g.busy = false
	}
}
