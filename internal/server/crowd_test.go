// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// A burst of strangers closes no connection whose handshake has just begun: the
// next one is accepted when the oldest has had its time, or a slot is free.
func TestStrangersHaveTimeForTheirHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		enter := func() *conn {
			c := &conn{}
			c.since.Store(time.Now().UnixNano())
			s.enter(c)
			return c
		}
		first := enter()
		<-time.After(10 * time.Millisecond)
		for range 7 {
			if wait := s.crowded(); wait != 0 {
				t.Fatalf("a slot is free, and accepting waits for %v", wait)
			}
			enter()
		}
		if wait := s.crowded(); wait != handshakeTime-10*time.Millisecond {
			t.Errorf("accepting waits for %v", wait)
		}
		<-time.After(handshakeTime - 10*time.Millisecond)
		if wait := s.crowded(); wait != 0 {
			t.Errorf("the oldest has had its time, and accepting waits for %v", wait)
		}
		s.claim(first, "east")
		if wait := s.crowded(); wait != 10*time.Millisecond {
			t.Errorf("the oldest is a cluster's now, and accepting waits for %v", wait)
		}
		s.leave(first)
		if wait := s.crowded(); wait != 0 {
			t.Errorf("a slot has become free, and accepting waits for %v", wait)
		}
	})
}
