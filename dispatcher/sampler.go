// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"sync"
	"time"
)

// sampler lets so many through in each second. The zero value lets none.
type sampler struct {
	perSecond int

	mu     sync.Mutex
	second time.Time // when it began
	passed int       // in it
	left   int       // out since the last one that passed
}

// pass reports whether one more may pass, and how many were left out before it.
func (s *sampler) pass(now time.Time) (leftOut int, ok bool) {
	if s.perSecond == 0 {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.second) >= time.Second {
		s.second, s.passed = now, 0
	}
	if s.passed >= s.perSecond {
		s.left++
		return 0, false
	}
	s.passed++
	leftOut, s.left = s.left, 0
	return leftOut, true
}
