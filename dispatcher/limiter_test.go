// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// At no time are there more places taken than there are, of all clusters or of
// one, nor more bytes; and when all have gone, nothing is left behind.
func TestLimiterNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Admissions: rapid.IntRange(1, 8).Draw(t, "admissions"),
			PerCluster: rapid.IntRange(1, 8).Draw(t, "perCluster"),
			Bytes:      int64(rapid.IntRange(1, 64).Draw(t, "bytes")),
		}
		l := newLimiter(limits)
		type place struct {
			cluster string
			size    int64
		}
		var held []place
		waiting := map[*waiter]place{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				p := place{fmt.Sprintf("c%d", rapid.IntRange(0, 3).Draw(t, "cluster")), int64(rapid.IntRange(1, 16).Draw(t, "size"))}
				if w, ok := l.enter(p.cluster, p.size); ok {
					held = append(held, p)
				} else if w != nil {
					waiting[w] = p
				}
			case 1:
				if len(held) > 0 {
					l.release(held[0].cluster, held[0].size)
					held = held[1:]
				}
			case 2:
				for w, p := range waiting {
					if l.leave(p.cluster, w) {
						held = append(held, p)
					}
					delete(waiting, w)
					break
				}
			}
			for w, p := range waiting {
				select {
				case <-w.granted:
					held = append(held, p)
					delete(waiting, w)
				default:
				}
			}
			per := map[string]int{}
			for _, p := range held {
				per[p.cluster]++
			}
			if len(held) != l.active || l.active > limits.Admissions {
				t.Fatalf("%d places held, %d counted, %d there are", len(held), l.active, limits.Admissions)
			}
			for c, n := range per {
				if n > limits.PerCluster || n != l.tenants[c].active {
					t.Fatalf("%s has %d of %d places, %d counted", c, n, limits.PerCluster, l.tenants[c].active)
				}
			}
			// Nobody waits who could be served.
			if l.active < limits.Admissions && l.next() != nil {
				t.Fatal("a free place is not given to who waits")
			}
		}
		for w, p := range waiting {
			if l.leave(p.cluster, w) {
				held = append(held, p)
			}
		}
		for _, p := range held {
			l.release(p.cluster, p.size)
		}
		if l.active != 0 || l.bytes != 0 || len(l.tenants) != 0 {
			t.Fatalf("left behind: %d places, %d bytes, %d tenants", l.active, l.bytes, len(l.tenants))
		}
	})
}

// F27: one cluster that asks for twenty times its share gets what is over, and
// the others get all that they ask for.
func TestOneClusterStormIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Admissions: 20, PerCluster: 10})
		var wg sync.WaitGroup
		var mu sync.Mutex
		shed := map[string]int{}
		ask := func(cluster string) {
			wg.Go(func() {
				if !l.acquire(cluster, 1, time.Now().Add(time.Second)) {
					mu.Lock()
					shed[cluster]++
					mu.Unlock()
					return
				}
				<-time.After(100 * time.Millisecond)
				l.release(cluster, 1)
			})
		}
		for range 100 {
			for range 20 {
				ask("storm")
			}
			ask("calm")
			<-time.After(20 * time.Millisecond)
		}
		wg.Wait()
		if shed["calm"] != 0 || shed["storm"] < 1000 {
			t.Errorf("shed: %v", shed)
		}
	})
}

// A place that becomes free goes to the waiting cluster that has the fewest.
func TestFreePlacesAreShared(t *testing.T) {
	l := newLimiter(Limits{Admissions: 4, PerCluster: 4})
	for _, c := range []string{"a", "a", "a", "b"} {
		if _, ok := l.enter(c, 1); !ok {
			t.Fatal(c)
		}
	}
	first, _ := l.enter("a", 1)
	second, _ := l.enter("b", 1)
	l.release("a", 1)
	select {
	case <-second.granted:
	default:
		t.Error("b waits though it has fewer places")
	}
	select {
	case <-first.granted:
		t.Error("a was served first")
	default:
	}
}

// Waiting ends soon, and with a quarter of the time that is left.
func TestQueueIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Admissions: 1})
		l.acquire("a", 1, time.Now().Add(time.Second))
		for left, want := range map[time.Duration]time.Duration{time.Second: queueWait, 8 * time.Millisecond: 2 * time.Millisecond} {
			begin := time.Now()
			if l.acquire("b", 1, begin.Add(left)) || time.Since(begin) != want {
				t.Errorf("with %v left: %v of waiting, want %v", left, time.Since(begin), want)
			}
		}
	})
}

// Memory has two steps: large reviews have to go first.
func TestMemoryCeiling(t *testing.T) {
	l := newLimiter(Limits{Bytes: 4 << 20})
	enter := func(size int64) bool { _, ok := l.enter("a", size); return ok }
	for range 2 {
		if !enter(1 << 20) {
			t.Error("below half of it large reviews pass")
		}
	}
	if enter(1<<20) || !enter(10<<10) {
		t.Error("above half of it small ones pass only")
	}
	for enter(200 << 10) {
	}
	if l.bytes > 4<<20 {
		t.Errorf("%d bytes are taken", l.bytes)
	}
}
