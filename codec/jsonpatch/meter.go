// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "time"

const (
	// stride is the work between two looks at the clock, about 50 us of it.
	stride = 64 << 10
	// What keeping one value costs, in units of bytes scanned.
	perElement = 8
	perMember  = 64

	tooSlow = limit("applying the patch takes longer than allowed")
)

// meter stops an Apply that has used up its time. A nil deadline is none.
type meter struct {
	deadline time.Time
	work     int
}

func newMeter(allowed time.Duration) *meter {
	m := &meter{}
	if allowed > 0 {
		m.deadline = time.Now().Add(allowed)
	}
	return m
}

// spend accounts for work, in bytes scanned or places moved, and now and then
// looks at the clock.
func (m *meter) spend(work int) error {
	m.work += work
	if m.work < stride {
		return nil
	}
	m.work = 0
	return m.check()
}

// check fails if the time is over.
func (m *meter) check() error {
	if !m.deadline.IsZero() && !time.Now().Before(m.deadline) {
		return tooSlow
	}
	return nil
}
