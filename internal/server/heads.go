// SPDX-License-Identifier: Apache-2.0

package server

import "sync"

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
