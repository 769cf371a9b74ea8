// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
)

// Occupy takes all turns to work on large objects, as a cluster would that has so
// many more waiting, until release. Time must be virtual.
func (d *Dispatcher) Occupy(t *testing.T, cluster string, waiting int) (release func()) {
	t.Helper()
	_, giveBack := turns(d.capacity, cluster)
	var waiters sync.WaitGroup
	for range waiting {
		waiters.Go(func() {
			done, err := d.capacity.Turn(cluster, overload.LightWork, time.Now().Add(time.Hour))
			if err != nil {
				t.Errorf("there is no turn for %s: %v", cluster, err)
				return
			}
			done()
		})
	}
	synctest.Wait()
	return func() {
		giveBack()
		waiters.Wait()
	}
}

// turns takes all turns to work on large objects that there are, and says how many.
func turns(c *overload.Capacity, cluster string) (n int, release func()) {
	var held []func()
	for {
		done, err := c.Turn(cluster, overload.LightWork, time.Now())
		if err != nil {
			return len(held), func() {
				for _, done := range held {
					done()
				}
			}
		}
		held = append(held, done)
	}
}

// Held returns how many bytes of reviews are counted.
func (d *Dispatcher) Held() int64 { return d.capacity.Usage().Bytes }
