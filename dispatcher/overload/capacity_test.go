// SPDX-License-Identifier: Apache-2.0

package overload

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// What an admission waits for, and how many of one cluster wait, is little: 10 ms, or
// a quarter of the time that is left, and 64.
func TestQueueOfAdmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters = 2
		c := New(Limits{Admissions: 1})
		c.admissions.enter("other", 0)
		begin := time.Now()
		var mu sync.Mutex
		waited := map[time.Duration]int{}
		var all sync.WaitGroup
		for i := range 100 * clusters {
			all.Go(func() {
				if _, err := c.Admit(fmt.Sprint(i%clusters), codec.NewBody(nil, nil), begin.Add(time.Minute)); err == nil {
					t.Error("there is a slot")
				}
				mu.Lock()
				defer mu.Unlock()
				waited[time.Since(begin)]++
			})
		}
		all.Wait()
		if want := map[time.Duration]int{0: 36 * clusters, 10 * time.Millisecond: 64 * clusters}; !maps.Equal(waited, want) {
			t.Errorf("shed after %v, want %v", waited, want)
		}
	})
}

// Where a slot is free nobody asks how long to wait for one.
func TestFreeSlotNeedsNoPatience(t *testing.T) {
	c := New(Limits{})
	if c.admissions.acquire("a", 1, func() time.Duration { t.Error("asked"); return 0 }) == nil {
		t.Error("no slot")
	}
}

// Waiting ends soon, and with a quarter of the time that is left.
func TestQueueIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Limits{Admissions: 1})
		c.admissions.acquire("a", 1, func() time.Duration { return 0 })
		for left, want := range map[time.Duration]time.Duration{time.Second: queueWait, 8 * time.Millisecond: 2 * time.Millisecond} {
			begin := time.Now()
			if _, err := c.Admit("b", codec.NewBody([]byte("x"), nil), begin.Add(left)); err == nil || time.Since(begin) != want {
				t.Errorf("with %v left: %v of waiting, want %v; %v", left, time.Since(begin), want, err)
			}
		}
	})
}

// The queue for work on large objects is as long as the admissions of one cluster are
// many.
func TestQueueOfTheWorkshop(t *testing.T) {
	w := newWorkshop()
	for range w.limits.Admissions {
		if slot, _ := w.enter("a", 0); slot == nil {
			t.Fatal("there is no turn")
		}
	}
	waiting := 0
	for waiting < 10_000 {
		if _, waiter := w.enter("a", 0); waiter == nil {
			break
		}
		waiting++
	}
	if waiting != 512 {
		t.Errorf("%d wait", waiting)
	}
}

// What is not said has the value that docs/configuration.md has.
func TestDefaultLimits(t *testing.T) {
	for _, c := range []struct{ said, want Limits }{
		{Limits{}, Limits{Admissions: 1024, PerCluster: 512, Bytes: 512 << 20, ShadowCalls: 256}},
		{Limits{Admissions: 1}, Limits{Admissions: 1, PerCluster: 1, Bytes: 512 << 20, ShadowCalls: 256}},
		{Limits{Admissions: 7, PerCluster: 5, Bytes: 3, ShadowCalls: 2}, Limits{Admissions: 7, PerCluster: 5, Bytes: 3, ShadowCalls: 2}},
	} {
		if got := New(c.said).Limits(); got != c.want {
			t.Errorf("%+v: the limits are %+v, want %+v", c.said, got, c.want)
		}
	}
}

// The forms of reviews count as the reviews do: a cluster whose objects its webhooks
// make large is shed itself, and no other; the only admission of a cluster gets what is
// free, so that it can end.
func TestFormsAreShared(t *testing.T) {
	const mib = 1 << 20
	c := New(Limits{Bytes: 30 * mib})
	admitted := func(cluster string) {
		body := codec.NewBody(make([]byte, 1000), nil)
		t.Cleanup(body.Release)
		if _, err := c.Admit(cluster, body, time.Now().Add(time.Minute)); err != nil {
			t.Fatalf("%s is shed: %v", cluster, err)
		}
	}
	for range 30 {
		admitted("greedy")
		form := codec.NewBody(make([]byte, 3*mib), nil)
		t.Cleanup(form.Release)
		_ = c.Hold("greedy", form, true)
	}
	if held := c.Usage().Bytes; held > 12*mib {
		t.Errorf("one cluster holds %d bytes", held)
	}
	admitted("other")
	large, larger := codec.NewBody(make([]byte, 15*mib), nil), codec.NewBody(make([]byte, 20*mib), nil)
	if c.Hold("other", large, true) != nil {
		t.Error("what is free is not for the only admission of another cluster")
	}
	if c.Hold("other", larger, true) == nil {
		t.Errorf("%d bytes are held", c.Usage().Bytes)
	}
	larger.Release()
	large.Release()
}

// The bytes of a review are counted until nobody holds them, be that long after the
// admission; who waits gets them then.
func TestBytesAreCountedUntilReleased(t *testing.T) {
	c := New(Limits{Bytes: 100})
	body := codec.NewBody(make([]byte, 60), nil)
	slot, err := c.Admit("a", body, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	form := codec.NewBody(make([]byte, 30), nil)
	for range 2 {
		if err := c.Hold("a", form, true); err != nil {
			t.Error(err)
		}
	}
	late := body.Retain() // a call's
	body.Release()
	slot.Release()
	if u := c.Usage(); len(u.Admissions) != 0 || u.Bytes != 90 {
		t.Errorf("%+v is taken", u)
	}
	_, w := c.admissions.enter("b", 50)
	form.Release()
	select {
	case <-w.granted:
		t.Error("bytes were given out twice")
	default:
	}
	late.Release()
	select {
	case <-w.granted:
	default:
		t.Error("b waits though there is room")
	}
}

// Lookups under way are a quarter of the admissions, which clusters share: a third of
// them is left for each that comes.
func TestLookupsAreShared(t *testing.T) {
	for _, x := range []struct{ admissions, lookups, left int }{{1024, 128, 64}, {16, 2, 1}, {2, 1, 0}} {
		c := New(Limits{Admissions: x.admissions})
		var held []func()
		take := func(cluster string) (n int) {
			for ; ; n++ {
				done, err := c.LookUp(cluster)
				if err != nil {
					return n
				}
				held = append(held, done)
			}
		}
		for range 2 { // what is given back is there again
			if east, west := take("east"), take("west"); east != x.lookups || west != x.left {
				t.Errorf("of %d admissions %d of east and %d of west look up, want %d and %d", x.admissions, east, west, x.lookups, x.left)
			}
			for _, done := range held {
				done()
			}
			held = nil
		}
	}
}

// Twice as many may have to be undone as there are admissions, which clusters share: a
// third of them is left for each that comes. What is given back is there again.
func TestUndosAreShared(t *testing.T) {
	for _, x := range []struct{ admissions, undos, left int }{{1024, 1024, 512}, {8, 8, 4}, {1, 1, 1}} {
		c := New(Limits{Admissions: x.admissions})
		var held []func()
		take := func(cluster string) (n int) {
			for ; ; n++ {
				done, err := c.Undo(cluster)
				if err != nil {
					if done != nil || !errors.Is(err, errUndo) {
						t.Fatalf("%s: %v", cluster, err)
					}
					return n
				}
				held = append(held, done)
			}
		}
		for range 2 {
			if east, west := take("east"), take("west"); east != x.undos || west != x.left {
				t.Errorf("of %d admissions %d of east and %d of west may be undone, want %d and %d", x.admissions, east, west, x.undos, x.left)
			}
			for _, done := range held {
				done()
			}
			held = nil
		}
	}
}

// A Shadow call takes its part of the calls and of the bytes, and no slot. It waits for
// nothing.
func TestShadowTakesItsPart(t *testing.T) {
	c := New(Limits{Admissions: 1, Bytes: 100, ShadowCalls: 4})
	slot, err := c.Admit("other", codec.NewBody(nil, nil), time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	for i, want := range []struct {
		size int
		ok   bool
	}{{101, false}, {20, true}, {20, true}, {20, false}, {0, false}} { // too large; the bytes; the calls
		body := codec.NewBody(make([]byte, want.size), nil)
		done, err := c.Shadow("a", body)
		if (err == nil) != want.ok {
			t.Errorf("call %d: %v", i, err)
		}
		if err == nil {
			defer done()
		}
		defer body.Release()
	}
	if u := c.Usage(); u.Bytes != 40 || len(u.Admissions) != 1 {
		t.Errorf("%+v is taken", u)
	}
	for range 2 * 4 { // what is given back is there again
		done, err := c.Shadow("b", codec.NewBody(nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
}

// Work on what is small takes no turn, on what is large all there is: half of the
// processors, but one. Who has none in time has none.
func TestTurnsOfLargeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Limits{})
		turns := max(runtime.GOMAXPROCS(0)/2, 1)
		var held []func()
		for range turns {
			done, err := c.Turn("a", LightWork, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, done)
		}
		if done, err := c.Turn("b", LightWork-1, time.Now()); err != nil {
			t.Error("what is small has no turn")
		} else {
			done()
		}
		begin := time.Now()
		if _, err := c.Turn("b", LightWork, begin.Add(time.Second)); err == nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		for _, done := range held {
			done()
		}
		if done, err := c.Turn("b", LightWork, time.Now()); err != nil {
			t.Error("a turn that was given back is not there")
		} else {
			done()
		}
	})
}
