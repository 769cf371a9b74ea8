// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "time"

const (
	// stride is the work between two looks at the clock, about 50 us of it.
	stride = 64 << 10
	// What keeping one value costs, in units of bytes scanned.
	perElement = 8
	perMember  = 64

	tooSlow   = limit("applying the patch takes longer than allowed")
	tooCostly = limit("comparing takes more work than allowed")
)

// meter stops work that has used up its time, or, if it is bounded, what is left.
// A zero deadline is none.
type meter struct {
	deadline time.Time
	work     int
	kept     int // estimate of the memory that open containers take, in bytes
	bounded  bool
	left     int // of the work allowed
}

func newMeter(l Limits) meter {
	m := meter{deadline: l.Deadline}
	if l.Time > 0 {
		if end := time.Now().Add(l.Time); m.deadline.IsZero() || end.Before(m.deadline) {
			m.deadline = end
		}
	}
	return m
}

// restart gives m the time that l allows, from now.
func (m *meter) restart(l Limits) {
	kept := m.kept
	*m = newMeter(l)
	m.kept = kept
}

// spend accounts for work, in bytes scanned or places moved, and now and then
// looks at the clock.
func (m *meter) spend(work int) error {
	if m.bounded {
		if m.left -= work; m.left < 0 {
			return tooCostly
		}
	}
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
