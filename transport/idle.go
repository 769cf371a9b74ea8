// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"sync"
	"time"
)

// connections are those to one Endpoint: how many are open, and those that are idle. It
// is safe for concurrent use.
type connections struct {
	mu     sync.Mutex
	most   int         // that may be open
	open   int         // with those that are being dialled
	idle   []*conn     // the one that was used last at the end
	closed bool        // none is kept any more
	sweep  *time.Timer // set while any is idle
}

// take returns the idle connection that was used last, or nil.
func (s *connections) take() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle) - 1
	if n < 0 {
		return nil
	}
	c := s.idle[n]
	s.idle[n], s.idle = nil, s.idle[:n]
	return c
}

// grow counts one that is about to be opened. It reports false if too many are open.
func (s *connections) grow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.most {
		return false
	}
	s.open++
	return true
}

// keep takes a connection back that is idle since now. It reports false where none is
// kept any more.
func (s *connections) keep(c *conn, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	c.since = now
	s.idle = append(s.idle, c)
	if len(s.idle) == 1 {
		s.wake(maxIdle)
	}
	return true
}

// wake has old ones closed after a while.
func (s *connections) wake(after time.Duration) {
	if s.sweep == nil {
		s.sweep = time.AfterFunc(after, s.closeOld)
	} else {
		s.sweep.Reset(after)
	}
}

// gone counts one as closed.
func (s *connections) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// count returns how many are open.
func (s *connections) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// closeOld closes those that have been idle for too long.
func (s *connections) closeOld() {
	for _, c := range s.old(time.Now()) {
		_ = c.Close()
	}
}

// old takes out those that have been idle for too long.
func (s *connections) old(now time.Time) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.idle) && now.Sub(s.idle[n].since) >= maxIdle {
		n++
	}
	old := slices.Clone(s.idle[:n])
	s.idle = slices.Delete(s.idle, 0, n)
	s.open -= n
	if len(s.idle) > 0 {
		s.wake(maxIdle - now.Sub(s.idle[0].since))
	}
	return old
}

// close closes the idle ones, and has those in use closed when they become idle.
func (s *connections) close() {
	for _, c := range s.last() {
		_ = c.Close()
	}
}

// last takes out all that are idle; none will be any more.
func (s *connections) last() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.idle
	s.idle, s.closed = nil, true
	s.open -= len(all)
	if s.sweep != nil {
		s.sweep.Stop()
	}
	return all
}
