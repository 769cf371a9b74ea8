// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"math/rand/v2"
	"slices"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// choice is an attempt that is about to be made: how, and, once it has been granted,
// at which Endpoint, with the leave of its breaker.
type choice struct {
	kind     Kind
	plain    bool // in the plain wording
	fresh    bool // over a new connection
	endpoint *Endpoint
	ticket   breaker.Ticket // the zero one where there is no breaker
}

// choose returns an Endpoint for one attempt of a cluster about a resource: of two random ones
// the one with fewer attempts under way, whose breaker lets it. Those of avoid
// come last. ok is false where there is no Endpoint, or no breaker lets any.
func (t *Target) choose(cluster, resource string, avoid []*Endpoint) (e *Endpoint, ticket breaker.Ticket, ok bool) {
	var buf [8]*Endpoint
	order := append(buf[:0], t.Endpoints()...)
	shuffle(order)
	if len(avoid) > 0 {
		slices.SortStableFunc(order, func(a, b *Endpoint) int { return rank(a, avoid) - rank(b, avoid) })
	}
	if t.unspared && len(order) > 0 {
		return order[0], ticket, true
	}
	for _, e := range order {
		if ticket, ok := e.breaker.Allow(cluster, resource); ok {
			return e, ticket, true
		}
	}
	for _, e := range order {
		if ticket, ok := e.breaker.AllowForced(cluster, resource); ok {
			return e, ticket, true
		}
	}
	return nil, ticket, false
}

// shuffle puts two random ones of the list first, the less busy one before the
// other, and leaves the rest in some order behind them.
func shuffle(list []*Endpoint) {
	if len(list) < 2 {
		return
	}
	i, j := rand.IntN(len(list)), rand.IntN(len(list)-1)
	list[0], list[i] = list[i], list[0]
	list[1], list[1+j] = list[1+j], list[1]
	if list[1].outstanding.Load() < list[0].outstanding.Load() {
		list[0], list[1] = list[1], list[0]
	}
}

func rank(e *Endpoint, avoid []*Endpoint) int {
	if slices.Contains(avoid, e) {
		return 1
	}
	return 0
}

// isReachable reports whether an Endpoint's own circuit lets attempts through.
func (t *Target) isReachable() bool {
	for _, e := range t.Endpoints() {
		if s := e.breaker.State(); s == breaker.Closed || s == breaker.Ramping {
			return true
		}
	}
	return false
}
