// SPDX-License-Identifier: Apache-2.0

package status

import "slices"

// ring keeps the last values that were added, at most as many as its size. It is
// not safe for concurrent use.
type ring[T any] struct {
	size   int
	values []T
	next   int // where the oldest is, once it is full
}

func newRing[T any](size int) *ring[T] { return &ring[T]{size: size} }

func (r *ring[T]) add(value T) {
	if len(r.values) < r.size {
		r.values = append(r.values, value)
		return
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % r.size
}

// oldestFirst returns a copy of what there is; it is never nil.
func (r *ring[T]) oldestFirst() []T {
	all := make([]T, 0, len(r.values))
	all = append(all, r.values[r.next:]...)
	return append(all, r.values[:r.next]...)
}

func (r *ring[T]) newestFirst() []T {
	all := r.oldestFirst()
	slices.Reverse(all)
	return all
}
