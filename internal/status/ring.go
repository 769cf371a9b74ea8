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

// sharedRing keeps the last decisions, at most as many as its size, and shares them
// among clusters: one that is full forgets the oldest of the cluster that has most,
// so that a storm of one cluster displaces its own only. It is not safe for
// concurrent use.
type sharedRing struct {
	size   int
	values []*Decision    // the oldest first
	has    map[string]int // by cluster
}

func newSharedRing(size int) *sharedRing { return &sharedRing{size: size, has: map[string]int{}} }

func (r *sharedRing) add(d *Decision) {
	r.has[d.Cluster]++
	if len(r.values) >= r.size {
		r.forgetOne()
	}
	r.values = append(r.values, d)
}

// forgetOne forgets the oldest of those that have most, with who comes counted.
func (r *sharedRing) forgetOne() {
	most := 0
	for _, n := range r.has {
		most = max(most, n)
	}
	i := slices.IndexFunc(r.values, func(d *Decision) bool { return r.has[d.Cluster] == most })
	if i < 0 {
		return // not reached: a size of 0
	}
	cluster := r.values[i].Cluster
	if r.has[cluster]--; r.has[cluster] == 0 {
		delete(r.has, cluster)
	}
	r.values = slices.Delete(r.values, i, i+1)
}

// newestFirst returns copies of what there is; it is never nil.
func (r *sharedRing) newestFirst() []Decision {
	all := make([]Decision, 0, len(r.values))
	for _, d := range slices.Backward(r.values) {
		all = append(all, *d)
	}
	return all
}
