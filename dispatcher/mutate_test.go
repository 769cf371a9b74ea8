// SPDX-License-Identifier: Apache-2.0

package dispatcher

import "testing"

// In the first round all that are left may still be asked, in the second those of them
// that are due.
func TestFollowing(t *testing.T) {
	for _, c := range []struct {
		due   []int
		rest  []int
		round int
		want  int
	}{
		{nil, nil, 0, 0},
		{nil, []int{1, 2, 3}, 0, 3},
		{[]int{1}, []int{1, 2, 3}, 0, 3},
		{nil, []int{1, 2, 3}, 1, 0},
		{[]int{0, 3}, []int{1, 2, 3}, 1, 1},
		{[]int{2, 1}, []int{1, 2, 3}, 1, 2},
		{[]int{4}, []int{1, 2, 3}, 1, 0},
		{[]int{1}, nil, 1, 0},
	} {
		r := reinvocation{due: c.due}
		if got := r.following(c.rest, c.round); got != c.want {
			t.Errorf("due are %v: of %v %d follow in round %d, want %d", c.due, c.rest, got, c.round, c.want)
		}
	}
}
