// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"
)

// At most throttleBurst lines of a kind pass in throttleWindow.
const (
	throttleWindow = 10 * time.Second
	throttleBurst  = 5
)

// throttle lets a few lines through and counts the others. The zero value is ready.
type throttle struct {
	mu              sync.Mutex
	start           time.Time
	passed, leftOut int
}

// pass reports whether a line may pass, and how many were left out before it
// since the last that passed.
func (t *throttle) pass(now time.Time) (leftOut int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.start) >= throttleWindow {
		t.start, t.passed = now, 0
	}
	if t.passed == throttleBurst {
		t.leftOut++
		return 0, false
	}
	t.passed++
	leftOut, t.leftOut = t.leftOut, 0
	return leftOut, true
}
