// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"
)

// At most throttleBurst records of a kind pass in throttleWindow.
const (
	throttleWindow = 10 * time.Second
	throttleBurst  = 5
)

// throttle lets a few records through and counts the others.
type throttle struct {
	mu              sync.Mutex
	start           time.Time
	passed, dropped int
}

// pass reports whether a record may pass at now, and how many were dropped
// before it since the last that passed.
func (t *throttle) pass(now time.Time) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.start) >= throttleWindow {
		t.start, t.passed = now, 0
	}
	if t.passed == throttleBurst {
		t.dropped++
		return 0, false
	}
	t.passed++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}
