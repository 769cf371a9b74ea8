// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	var throttle throttle
	now := time.Now()
	passed := 0
	for range 1000 {
		if _, ok := throttle.pass(now); ok {
			passed++
		}
	}
	if passed != throttleBurst {
		t.Errorf("%d records passed, want %d", passed, throttleBurst)
	}
	if dropped, ok := throttle.pass(now.Add(throttleWindow)); !ok || dropped != 1000-throttleBurst {
		t.Errorf("pass = %d, %v after the window", dropped, ok)
	}
	if dropped, ok := throttle.pass(now.Add(throttleWindow)); !ok || dropped != 0 {
		t.Errorf("pass = %d, %v: the same are counted twice", dropped, ok)
	}
}
