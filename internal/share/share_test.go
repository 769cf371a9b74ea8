// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Whatever clusters take: there is never more taken than there is, a cluster with
// nothing gets what is left, and no cluster that takes all it can gets more than one
// that came before it.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := int64(rapid.IntRange(1, 200).Draw(t, "amount"))
		p := NewPool(amount)
		held, used := map[string]int64{}, int64(0)
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			cluster := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "cluster"))
			n, reserve := int64(rapid.IntRange(0, 9).Draw(t, "n")), int64(rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "reserve"))
			if rapid.Bool().Draw(t, "give") && held[cluster] >= n {
				p.Give(cluster, n)
				held[cluster] -= n
				used -= n
				continue
			}
			left := amount - reserve - used
			want := n <= left && (held[cluster] == 0 || held[cluster]+n <= left-n)
			if got := p.Take(cluster, n, reserve); got != want {
				t.Fatalf("take %d: %v, want %v; has %d, %d of %d are used", n, got, want, held[cluster], used, amount)
			}
			if want {
				held[cluster] += n
				used += n
			}
			if used > amount {
				t.Fatalf("%d of %d are used", used, amount)
			}
		}
		for cluster, n := range held {
			p.Give(cluster, n)
		}
		if p.used != 0 || len(p.held) != 0 {
			t.Fatalf("left behind: %+v", p)
		}
	})
}

// Greedy clusters have equal shares, once all that each had has gone around.
func TestShares(t *testing.T) {
	const amount, clusters = 1000, 4
	p := NewPool(amount)
	held := map[string]int{}
	for range 3 * amount {
		for i := range clusters {
			cluster := fmt.Sprint(i)
			if held[cluster] > 0 {
				p.Give(cluster, 1)
				held[cluster]--
			}
			for p.Take(cluster, 1, 0) {
				held[cluster]++
			}
		}
	}
	for cluster, n := range held {
		if n < amount/(clusters+1)-5 || n > amount/(clusters+1)+5 {
			t.Errorf("cluster %s has %d of %d", cluster, n, amount)
		}
	}
	if !p.Take("new", amount/(clusters+1)-5, 0) {
		t.Error("nothing is left for a cluster that comes")
	}
}
