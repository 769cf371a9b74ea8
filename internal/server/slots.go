// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"
)

// slots shares the connections that may be open out among clusters, max-min
// fairly: when there are too many, whoever has most loses one. A connection is a
// stranger's until its caller is known, by the certificate after the TLS
// handshake, or by the token of a request.
//
// Clusters together leave a part of the slots to strangers, so that a caller
// always comes as far as showing who it is. Among strangers the oldest makes
// way for the newest, once it has had the time for a handshake: until then the
// newest is not accepted (crowded).
type slots struct {
	limit, strangers int // of all connections; of them the strangers' own

	mu    sync.Mutex
	open  map[*conn]struct{}
	known map[string]map[*conn]struct{} // by cluster
}

// strangersPart is the part of the slots that clusters leave to strangers: one
// in so many, at least one of several.
const strangersPart = 8

func newSlots(limit int) *slots {
	return &slots{
		limit:     limit,
		strangers: min(max(1, limit/strangersPart), limit-1),
		open:      map[*conn]struct{}{},
		known:     map[string]map[*conn]struct{}{"": {}},
	}
}

// enter gives c, of a stranger, a slot, if need be that of the victim, which the
// caller closes. Without a slot for c the victim is c.
func (s *slots) enter(c *conn) (victim *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.limit {
		victim = oldest(s.known[""], func(*conn) bool { return true })
		if victim == nil {
			return c
		}
		s.remove(victim)
	}
	s.open[c] = struct{}{}
	s.known[""][c] = struct{}{}
	return victim
}

// handshakeTime is what a stranger has for its handshake before it must make way for
// another: many times what one takes.
const handshakeTime = 50 * time.Millisecond

// crowded returns for how long at least no connection should be accepted: until the
// stranger that would make way has had its time. Who waits meanwhile waits in the
// kernel's queue, in the order of arrival, and loses nothing.
func (s *slots) crowded() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) < s.limit {
		return 0
	}
	first := oldest(s.known[""], func(*conn) bool { return true })
	if first == nil {
		return 0
	}
	return max(0, handshakeTime-time.Since(time.Unix(0, first.since.Load())))
}

// claim makes c a connection of the cluster, and returns the one that must make
// way for it, which the caller closes: nil, or one of whoever has most, or c.
func (s *slots) claim(c *conn, cluster string) (victim *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; !open {
		return nil
	}
	s.disown(c)
	if s.known[cluster] == nil {
		s.known[cluster] = map[*conn]struct{}{}
	}
	s.known[cluster][c] = struct{}{}
	c.owner = cluster
	if len(s.open)-len(s.known[""]) > s.limit-s.strangers {
		victim = s.surplus(c)
		s.remove(victim)
	}
	return victim
}

// surplus returns the connection that is closed for c, which is over the limit
// of clusters: the one that has been idle for longest of those of the cluster
// that has most. Where none of them is idle, a cluster that has more than that
// of c loses its oldest request, and c is closed otherwise.
func (s *slots) surplus(c *conn) *conn {
	most := c.owner
	for cluster, list := range s.known {
		if cluster != "" && len(list) > len(s.known[most]) {
			most = cluster
		}
	}
	if idle := oldest(s.known[most], func(other *conn) bool { return other != c && !other.busy.Load() }); idle != nil {
		return idle
	}
	if most == c.owner {
		return c
	}
	return oldest(s.known[most], func(*conn) bool { return true })
}

// oldest returns the connection among those that count which has been as it is
// for longest, or nil.
func oldest[V any](list map[*conn]V, counts func(*conn) bool) *conn {
	var found *conn
	for c := range list {
		if counts(c) && (found == nil || c.since.Load() < found.since.Load()) {
			found = c
		}
	}
	return found
}

// leave frees the slot of c, if it still has one.
func (s *slots) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

func (s *slots) remove(c *conn) {
	delete(s.open, c)
	s.disown(c)
}

func (s *slots) disown(c *conn) {
	list := s.known[c.owner]
	delete(list, c)
	if len(list) == 0 && c.owner != "" {
		delete(s.known, c.owner)
	}
}

// count returns the number of open connections.
func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// each calls do with every open connection.
func (s *slots) each(do func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		do(c)
	}
}

// heads bounds the requests of which the head has begun and is not complete: each
// has a buffer for the largest head. A caller sends its head in one piece, nearly
// always, so that few are under way at a time, however many callers there are.
// Where there are too many, whoever has most loses the oldest. It is safe for
// concurrent use.
type heads struct {
	limit int

	mu   sync.Mutex
	open map[*conn]string // with the cluster, "" for a stranger
	of   map[string]int   // how many, by cluster
}

// headsPart is the part of all connections that may be amid a head: one in so many,
// leastHeads at least.
const (
	headsPart  = 8
	leastHeads = 16
)

func newHeads(connections int) *heads {
	return &heads{limit: max(leastHeads, connections/headsPart), open: map[*conn]string{}, of: map[string]int{}}
}

// begin notes that a head begins on c, and returns the connection, if any, that the
// caller closes for it.
func (h *heads) begin(c *conn) (victim *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c] = c.owner
	h.of[c.owner]++
	if len(h.open) <= h.limit {
		return nil
	}
	most := 0
	for _, n := range h.of {
		most = max(most, n)
	}
	victim = oldest(h.open, func(other *conn) bool { return h.of[h.open[other]] == most })
	h.remove(victim)
	return victim
}

// end notes that the head of c is complete, or that none will be.
func (h *heads) end(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(c)
}

func (h *heads) remove(c *conn) {
	cluster, ok := h.open[c]
	if !ok {
		return
	}
	delete(h.open, c)
	if h.of[cluster]--; h.of[cluster] == 0 {
		delete(h.of, cluster)
	}
}
