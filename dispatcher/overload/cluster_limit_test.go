// SPDX-License-Identifier: Apache-2.0

package overload

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A cluster's part of the slots becomes smaller, and what it has stays; it becomes larger,
// and whoever waits is served.
func TestLimitCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Limits{Admissions: 100, PerCluster: 50})
		a := c.admissions
		var held []*tenant
		take := func(cluster string) bool {
			tenant := a.acquire(cluster, 0, func() time.Duration { return time.Millisecond })
			if tenant != nil {
				held = append(held, tenant)
			}
			return tenant != nil
		}
		for range 20 {
			if !take("east") {
				t.Fatal("there is none")
			}
		}
		c.LimitCluster(16)
		if c.Limits().PerCluster != 16 || take("east") {
			t.Errorf("the limit is %d, and a cluster that is over it gets one", c.Limits().PerCluster)
		}
		if !take("west") {
			t.Error("another cluster gets none")
		}
		var waiting sync.WaitGroup
		var served atomic.Int64
		for range 3 {
			waiting.Go(func() {
				if a.acquire("east", 0, func() time.Duration { return time.Hour }) != nil {
					served.Add(1)
				}
			})
		}
		synctest.Wait()
		for range 4 { // 16 are left
			held[0].release()
		}
		if synctest.Wait(); served.Load() != 0 {
			t.Error("one is served at the limit")
		}
		held[0].release()
		if synctest.Wait(); served.Load() != 1 {
			t.Errorf("%d are served below the limit", served.Load())
		}
		c.LimitCluster(18)
		if waiting.Wait(); served.Load() != 3 {
			t.Errorf("%d are served when the limit is above them", served.Load())
		}
		for limit, want := range map[int]int{0: 1, -5: 1, 51: 50} {
			if c.LimitCluster(limit); c.Limits().PerCluster != want {
				t.Errorf("%d is taken as %d", limit, c.Limits().PerCluster)
			}
		}
	})
}
