// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"math/rand/v2"
	"slices"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// choice is an Endpoint that may be asked, with the leave of its breaker.
type choice struct {
	endpoint *Endpoint
	ticket   breaker.Ticket // the zero one where no breaker was asked
	plain    bool           // it is sent the plain wording
	kind     Kind           // why it is asked
}

// choose returns an Endpoint for one attempt of a cluster about a resource: of two random ones
// the one with fewer attempts under way, whose breaker lets it. Those of avoid
// come last. ok is false where there is no Endpoint, or no breaker lets any.
func (t *Target) choose(cluster, resource string, avoid []*Endpoint) (choice, bool) {
	var buf [8]*Endpoint
	order := append(buf[:0], t.Endpoints()...)
	shuffle(order)
	if len(avoid) > 0 {
		slices.SortStableFunc(order, func(a, b *Endpoint) int { return rank(a, avoid) - rank(b, avoid) })
	}
	if t.unspared && len(order) > 0 {
		return choice{endpoint: order[0]}, true
	}
	for _, e := range order {
		if ticket, ok := e.breaker.Allow(cluster, resource); ok {
			return choice{endpoint: e, ticket: ticket}, true
		}
	}
	for _, e := range order {
		if ticket, ok := e.breaker.AllowForced(cluster, resource); ok {
			return choice{endpoint: e, ticket: ticket}, true
		}
	}
	return choice{}, false
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
