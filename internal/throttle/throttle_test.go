// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	var throttle Throttle
	now := time.Now()
	passed := 0
	for range 1000 {
		if _, ok := throttle.Pass(now); ok {
			passed++
		}
	}
	if passed != Burst {
		t.Errorf("%d records passed, want %d", passed, Burst)
	}
	if dropped, ok := throttle.Pass(now.Add(Window)); !ok || dropped != 1000-Burst {
		t.Errorf("pass = %d, %v after the window", dropped, ok)
	}
	if dropped, ok := throttle.Pass(now.Add(Window)); !ok || dropped != 0 {
		t.Errorf("pass = %d, %v: the same are counted twice", dropped, ok)
	}
}
