// SPDX-License-Identifier: Apache-2.0

// Package share divides what there is a limited amount of among clusters, so that
// what one of them takes is never missing to the others.
package share

import "sync"

// Pool is an amount of something, such as lines that may wait to be written. A
// cluster that has some of it gets more as long as it then has no more than is left:
// with n clusters that want all, each gets the n+1st part, and one part stays free
// for a cluster that comes. One that has none gets what is left. A Pool remembers
// those only that have some. It is safe for concurrent use.
type Pool struct {
	amount int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by cluster
}

// NewPool returns a Pool of that amount.
func NewPool(amount int64) *Pool { return &Pool{amount: amount, held: map[string]int64{}} }

// Take takes n for a cluster, and reports whether it could. The last reserve of the
// Pool are for others who ask: Take leaves them alone.
func (p *Pool) Take(cluster string, n, reserve int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, left := p.held[cluster], p.amount-reserve-p.used-n
	if left < 0 || own > 0 && own+n > left {
		return false
	}
	if n > 0 {
		p.held[cluster] = own + n
		p.used += n
	}
	return true
}

// Give gives back n that Take has taken for the cluster.
func (p *Pool) Give(cluster string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.held[cluster] -= n; p.held[cluster] <= 0 {
		delete(p.held, cluster)
	}
}
