// SPDX-License-Identifier: Apache-2.0

package overload

// ranking is a heap of tenants. It implements heap.Interface.
type ranking struct {
	number int // in tenant.rank
	before func(a, b *tenant) bool
	list   []*tenant
}

func (r *ranking) Len() int           { return len(r.list) }
func (r *ranking) Less(i, j int) bool { return r.before(r.list[i], r.list[j]) }

func (r *ranking) Swap(i, j int) {
	r.list[i], r.list[j] = r.list[j], r.list[i]
	r.list[i].rank[r.number], r.list[j].rank[r.number] = i, j
}

func (r *ranking) Push(x any) {
	t := x.(*tenant) //nolint:forcetypeassert // heap.Interface
	t.rank[r.number] = len(r.list)
	r.list = append(r.list, t)
}

func (r *ranking) Pop() any {
	last := len(r.list) - 1
	t := r.list[last]
	r.list[last] = nil
	r.list = r.list[:last]
	t.rank[r.number] = -1
	return t
}
