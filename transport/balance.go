// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"math/rand/v2"
	"slices"
)

// balance orders Endpoints for one attempt: of two random ones the one with fewer
// attempts under way comes first (power of two choices), those of avoid come last.
func balance(list, avoid []*Endpoint) {
	shuffle(list)
	if len(avoid) > 0 {
		slices.SortStableFunc(list, func(a, b *Endpoint) int { return rank(a, avoid) - rank(b, avoid) })
	}
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
