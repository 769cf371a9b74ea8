// SPDX-License-Identifier: Apache-2.0

package dispatcher

// Occupy takes all turns to work on large objects, as a cluster would that has so
// many more waiting, until release.
func (d *Dispatcher) Occupy(cluster string, waiting int) (release func()) {
	var held []*tenant
	for range d.account.workshop.limits.Admissions {
		t, _ := d.account.workshop.enter(cluster, 0)
		held = append(held, t)
	}
	waiters := map[*waiter]*tenant{}
	for range waiting {
		t, w := d.account.workshop.enter(cluster, 0)
		waiters[w] = t
	}
	return func() {
		for _, t := range held {
			t.release()
		}
		for w, t := range waiters {
			if d.account.workshop.leave(t, w) {
				t.release()
			}
		}
	}
}

// Held returns how many bytes of reviews are counted.
func (d *Dispatcher) Held() int64 {
	d.limiter.mu.Lock()
	defer d.limiter.mu.Unlock()
	return d.limiter.bytes
}
