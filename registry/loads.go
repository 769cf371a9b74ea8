// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"
	"time"
)

// Loads are counts of the changed configurations that a Registry has read.
type Loads struct {
	Good, Bad int64
	// Last is when the configuration that is served was loaded; zero: none is.
	Last time.Time
}

// loads keeps the counts.
type loads struct {
	good, bad atomic.Int64
	last      atomic.Pointer[time.Time]
}

func (l *loads) succeed() {
	now := time.Now()
	l.last.Store(&now)
	l.good.Add(1)
}

func (l *loads) fail() { l.bad.Add(1) }

// Loads returns the counts as of now.
func (r *Registry) Loads() Loads {
	counts := Loads{Good: r.loads.good.Load(), Bad: r.loads.bad.Load()}
	if last := r.loads.last.Load(); last != nil {
		counts.Last = *last
	}
	return counts
}
