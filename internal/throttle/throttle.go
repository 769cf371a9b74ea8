// SPDX-License-Identifier: Apache-2.0

// Package throttle keeps what strangers or broken peers can cause from filling a log.
package throttle

import (
	"sync"
	"time"
)

// At most Burst records of a kind pass in Window.
const (
	Window = 10 * time.Second
	Burst  = 5
)

// Throttle lets a few records through and counts the others. The zero value is ready.
// It is safe for concurrent use.
type Throttle struct {
	mu              sync.Mutex
	start           time.Time
	passed, dropped int
}

// Pass reports whether a record may pass at now, and how many were dropped
// before it since the last that passed.
func (t *Throttle) Pass(now time.Time) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.start) >= Window {
		t.start, t.passed = now, 0
	}
	if t.passed == Burst {
		t.dropped++
		return 0, false
	}
	t.passed++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}
