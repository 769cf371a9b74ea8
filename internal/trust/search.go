// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"sync"
	"time"
)

// search bounds what clients that point at no authority cost: a certificate
// without an authority key id may be of any authority of its issuer's name, and
// a stranger can make such certificates for nothing. A search draws on the
// searchBurst, which fills again at searchRate; what finds a signer is given
// back, for as many certificates of an authority as are remembered. While there
// is nothing left, certificates are verified as ever that are remembered, that
// name their authority's key, or whose issuer's name few authorities have.
type search struct {
	one chan struct{} // a token: one search at a time, on one core
	now func() time.Time

	mu     sync.Mutex
	checks float64 // left
	filled time.Time
}

// Signature checks: 0.1 of a core at 60 us each, after two seconds' worth at
// once.
const (
	searchRate  = 1500 // per second
	searchBurst = 30000
)

// maxSearched is the size in bytes of the largest certificate that is searched
// for: each check hashes it whole.
const maxSearched = 16 << 10

func newSearch() *search {
	s := &search{one: make(chan struct{}, 1), now: time.Now, checks: searchBurst}
	s.one <- struct{}{}
	return s
}

// searching is one client's search.
type searching struct {
	search *search
	begun  bool
	taken  float64
}

func (s *search) begin() *searching { return &searching{search: s} }

// take takes one check, after waiting for others' searches to end, and reports
// whether there was one.
func (g *searching) take() bool {
	if !g.begun {
		<-g.search.one
		g.begun = true
	}
	if !g.search.take() {
		return false
	}
	g.taken++
	return true
}

// refund gives back what was taken: the search has found something.
func (g *searching) refund() {
	g.search.give(g.taken)
	g.taken = 0
}

func (g *searching) end() {
	if g.begun {
		g.search.one <- struct{}{}
	}
}

func (s *search) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.filled.IsZero() {
		s.checks = min(searchBurst, s.checks+searchRate*now.Sub(s.filled).Seconds())
	}
	s.filled = now
	if s.checks < 1 {
		return false
	}
	s.checks--
	return true
}

func (s *search) give(n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = min(searchBurst, s.checks+n)
}
