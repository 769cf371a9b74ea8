// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

// gate lets forced attempts through: one at a time, given up after
// ProbeTimeout, and none before ForcedInterval has passed since the last.
type gate struct {
	settings *Settings
	number   uint64 // of the last one let through; they begin with 1
	busy     bool
	last     time.Time
}

// enter returns the number of the attempt that it lets through.
func (g *gate) enter(now time.Time) (uint64, bool) {
	wait := g.settings.ForcedInterval
	if g.busy {
		wait = max(wait, g.settings.ProbeTimeout)
	}
	if g.number > 0 && now.Sub(g.last) < wait {
		return 0, false
	}
	g.number++
	g.busy, g.last = true, now
	return g.number, true
}

// leave ends an attempt. One that was given up has no effect.
func (g *gate) leave(number uint64) {
	if number == g.number {
		g.busy = false
	}
}
