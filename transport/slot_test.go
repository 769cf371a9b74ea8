// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
)

func newSlots(n int) *slotPool { return &slotPool{free: n, holders: map[holder]*holding{}} }

// Whatever the others hold, there is a slot for who has none, as long as there are
// fewer holders than it takes to share out all; no slot is lost or given twice; and
// nobody waits who may have one.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 64).Draw(t, "size")
		p, taken := newSlots(size), map[holder]int{}
		names := []string{"east", "west", "north"}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			who := holder{cluster: rapid.SampledFrom(names).Draw(t, "cluster"), shadow: rapid.Bool().Draw(t, "shadow")}
			if rapid.Bool().Draw(t, "acquire") {
				granted, ok := p.enter(who)
				if granted != nil {
					ok = p.leave(who, granted)
				}
				if ok {
					taken[who]++
				}
				if !ok && taken[who] == 0 && p.free > 0 {
					t.Fatalf("%v has none, %d are free, and it gets none", who, p.free)
				}
				if size >= 4 && taken[who] == size {
					t.Fatalf("%v has all", who)
				}
			} else if taken[who] > 0 {
				p.release(who)
				taken[who]--
			}
			all := 0
			for _, n := range taken {
				all += n
			}
			if p.free != size-all || p.waiting != 0 {
				t.Fatalf("%d of %d are free, %d are taken, %d wait", p.free, size, all, p.waiting)
			}
		}
	})
}

// One that is freed goes to the waiting holder that has the fewest.
func TestFreedSlotGoesToTheFewest(t *testing.T) {
	for range 20 { // in whatever order the holders are looked at
		freedSlotGoesToTheFewest(t)
	}
}

func freedSlotGoesToTheFewest(t *testing.T) {
	t.Helper()
	p := newSlots(4)
	east, west, shadow := holder{cluster: "east"}, holder{cluster: "west"}, holder{"west", true}
	for _, who := range []holder{east, east, east, west} {
		if _, ok := p.enter(who); !ok {
			t.Fatalf("%v has no slot", who)
		}
	}
	first, _ := p.enter(east)
	second, _ := p.enter(shadow)
	p.release(east)
	select {
	case <-second:
	default:
		t.Error("who has none is not the next")
	}
	select {
	case <-first:
		t.Error("who has most is the next")
	default:
	}
}

// A slot that is granted just as its waiter gives up is the waiter's.
func TestSlotGrantedAtTheEnd(t *testing.T) {
	p, east, west := newSlots(1), holder{cluster: "east"}, holder{cluster: "west"}
	p.enter(west)
	granted, _ := p.enter(east)
	p.release(west)
	if !p.leave(east, granted) || p.free != 0 {
		t.Errorf("it is lost, %d are free", p.free)
	}
	p.release(east)
	if p.free != 1 || len(p.holders) != 0 || p.waiting != 0 {
		t.Errorf("%d are free, %d holders, %d wait", p.free, len(p.holders), p.waiting)
	}
}

func TestWaitingForASlotEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, who := newSlots(1), holder{cluster: "east"}
		p.enter(holder{cluster: "west"})
		begin := time.Now()
		if p.acquire(who, begin.Add(time.Hour)) || time.Since(begin) != slotWait {
			t.Errorf("it waited %v", time.Since(begin))
		}
		begin = time.Now()
		if p.acquire(who, begin.Add(slotWait)) || time.Since(begin) != slotWait/4 {
			t.Errorf("it waited %v", time.Since(begin))
		}
		var waiting sync.WaitGroup
		for range 2 * slotQueue {
			waiting.Go(func() { p.acquire(who, time.Now().Add(time.Hour)) })
		}
		synctest.Wait()
		p.mu.Lock()
		if p.waiting != slotQueue {
			t.Errorf("%d wait", p.waiting)
		}
		p.mu.Unlock()
		waiting.Wait()
		if p.waiting != 0 || len(p.holders) != 1 {
			t.Errorf("%d wait, %d holders", p.waiting, len(p.holders))
		}
	})
}

// One cluster's retries and hedges leave some for the others, and all together
// stay within their shares and the burst.
func TestBudgetIsSharedOut(t *testing.T) {
	var cs callers
	now, total, calls := time.Unix(1_000_000, 0), 0, 0
	spend := func(cluster string) (n int) {
		for cs.of(cluster, now).budget.take(now) {
			n++
		}
		total += n
		return n
	}
	first := func(cluster string, n int) {
		calls += n
		for range n {
			cs.of(cluster, now).budget.first(now)
		}
	}
	first("east", 1000)
	if n := spend("east"); n != 50+5 {
		t.Errorf("east has %d", n)
	}
	for _, cluster := range []string{"west", "north", "south"} {
		if spend(cluster) == 0 {
			t.Errorf("there is none left for %s", cluster)
		}
	}
	first("up", 100)
	if n := spend("up"); n < 5 {
		t.Errorf("a share is %d", n)
	}
	if most := calls/20 + 10; total > most {
		t.Errorf("%d extra attempts, at most %d", total, most)
	}
}

// What one cluster's reviews take says nothing of another's, nor large ones of small
// ones; and who does not call is forgotten.
func TestCallersAreApart(t *testing.T) {
	var cs callers
	now := time.Unix(1_000_000, 0)
	for range recentWarm {
		cs.of("east", now).durations(largeReview).record(now, time.Minute)
	}
	cs.of("east", now).pause(now.Add(time.Minute))
	cs.of("east", now).pause(now.Add(time.Second))
	if got := cs.of("east", now).spared.Load(); got != now.Add(time.Minute).UnixNano() {
		t.Errorf("a shorter pause ends a longer one: %v", time.Unix(0, got))
	}
	for _, d := range []*recent{cs.of("east", now).durations(1), cs.of("west", now).durations(largeReview)} {
		if _, _, ok := d.quantiles(now); ok {
			t.Error("it is known how long they take")
		}
	}
	if _, _, ok := cs.of("east", now).durations(largeReview).quantiles(now); !ok {
		t.Error("it is forgotten at once")
	}
	if cs.of("west", now).spared.Load() != 0 {
		t.Error("west is asked to pause")
	}
}

// A cluster that has not called for a minute is forgotten, one that has is not.
func TestCallersAreForgotten(t *testing.T) {
	var cs callers
	now := time.Unix(1_000_000, 0)
	known := func() (names []string) {
		for name := range cs.known {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	for _, name := range []string{"east", "west", "north"} {
		cs.of(name, now)
	}
	east := cs.of("east", now.Add(1))
	if cs.of("north", now.Add(callerIdle-1)); len(cs.known) != 3 {
		t.Errorf("a moment too early %v are known", known())
	}
	if cs.of("north", now.Add(callerIdle)); !slices.Equal(known(), []string{"east", "north"}) {
		t.Errorf("after a minute %v are known", known())
	}
	if cs.of("east", now.Add(callerIdle)) != east {
		t.Error("what is known of a cluster that calls is forgotten")
	}
}

// A deadline that the caller chose says something about the webhook only where one
// that is well would have met it.
func TestFairTime(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, row := range []struct {
		name             string
		allowed, timeout time.Duration
		median           time.Duration // of what the cluster saw; 0: nothing
		want             bool
	}{
		{"its own timeout", 10 * time.Second, 10 * time.Second, 0, true},
		{"a good part of it", 4 * time.Second, 10 * time.Second, time.Second, true},
		{"a small part, nothing known", 200 * time.Millisecond, 10 * time.Second, 0, false},
		{"a small part, and answers take about as long", 200 * time.Millisecond, 10 * time.Second, 150 * time.Millisecond, false},
		{"a small part, many times what answers take", 200 * time.Millisecond, 10 * time.Second, 5 * time.Millisecond, true},
		{"a third of it", 3 * time.Second, 9 * time.Second, 0, true},
		{"ten times what answers take", 200 * time.Millisecond, 10 * time.Second, 20 * time.Millisecond, true},
		{"a little less", 200*time.Millisecond - 1, 10 * time.Second, 20 * time.Millisecond, false},
		{"unknown", time.Millisecond, 0, 0, true},
	} {
		r := &race{Call: Call{Timeout: row.timeout}, supply: supply{caller: &caller{}}}
		for range recentWarm {
			if row.median > 0 {
				r.supply.caller.durations(0).record(now, row.median)
			}
		}
		if got := r.isFair(row.allowed, now); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// A call that nobody may make, and that must be answered, waits for a circuit: when
// the webhook answers again it has lost nothing but the calls that ended before.
func TestWaitsForTheWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.wait = true
		for range 10 {
			x.call(Repeat{}, never)
		}
		if s := x.target.Endpoints()[0].Health(); len(s.Circuits) != 1 {
			t.Fatalf("no circuit is open: %+v", s)
		}
		begin := time.Now()
		hung := make(chan struct{})
		x.replies = []reply{{after: 700 * time.Millisecond, result: never.result}}
		x.replies[0].result.resp.Allowed = true // it hangs for as long, and answers
		go func() {
			defer close(hung)
			x.one(time.Second)
		}()
		synctest.Wait()
		var calls sync.WaitGroup
		var failed, took atomic.Int64
		for range maxWaiting {
			calls.Go(func() {
				if _, err := x.one(10 * time.Second); err != nil {
					failed.Add(1)
				}
				took.Store(int64(time.Since(begin)))
			})
		}
		synctest.Wait()
		now := time.Now()
		if _, err := x.one(10 * time.Second); time.Since(now) > 0 || err == nil {
			t.Errorf("one too many waited %v: %v", time.Since(now), err)
		}
		calls.Wait()
		<-hung
		if failed.Load() > 0 {
			t.Errorf("%d calls failed", failed.Load())
		}
		if d := time.Duration(took.Load()); d > 20*time.Second {
			t.Errorf("the last one took %v", d)
		}
		if n := x.target.callers.of("", time.Now()).waiting.Load(); n != 0 {
			t.Errorf("%d wait", n)
		}
		x.losers.Wait()
	})
}

// What says at once that it fails is not waited for, nor is what nobody needs any
// more.
func TestDoesNotWait(t *testing.T) {
	broken := fails(0, hook.HTTPStatus, breaker.ServerError)
	for name, row := range map[string]struct {
		before reply
		over   bool
	}{"not to be reached": {before: refused}, "errors": {before: broken}, "answered meanwhile": {before: never, over: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTable(t, 1)
				x.wait = true
				for range 12 {
					x.call(Repeat{}, row.before)
				}
				x.replies = []reply{never, says(0, true)}
				var probe sync.WaitGroup
				probe.Go(func() { _, _ = x.one(time.Second) })
				synctest.Wait()
				defer probe.Wait()
				x.over.Store(row.over)
				begin := time.Now()
				if _, err := x.one(time.Second); err == nil || time.Since(begin) > maxLook {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
			})
		})
	}
}

// A call waits for the circuit of a webhook that hangs only where no answer denies, and
// only while there is something to call.
func TestWaitsForNobodyElse(t *testing.T) {
	hanging := func(t *testing.T) *table {
		x := newTable(t, 1)
		for range 10 {
			x.call(Repeat{}, never)
		}
		x.wait, x.replies = true, []reply{never}
		return x
	}
	none := new([]*Endpoint)
	for name, row := range map[string]struct {
		change func(*table)
		within time.Duration
		cause  hook.Cause
	}{
		"an answer would not deny":    {func(x *table) { x.wait = false }, 0, hook.BreakerOpen},
		"there is nothing to call":    {func(x *table) { x.target.endpoints.Store(none) }, 0, hook.Unreachable},
		"there is nothing any more":   {func(x *table) { time.AfterFunc(200*time.Millisecond, func() { x.target.endpoints.Store(none) }) }, 200*time.Millisecond + maxLook, hook.Unreachable},
		"it is waited for to the end": {func(*table) {}, time.Second, hook.BreakerOpen},
		"nobody needs it any more":    {func(x *table) { time.AfterFunc(200*time.Millisecond, func() { x.over.Store(true) }) }, 200*time.Millisecond + maxLook, hook.BreakerOpen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := hanging(t)
				var probe sync.WaitGroup
				probe.Go(func() { _, _ = x.one(time.Second) }) // which the circuit lets through
				synctest.Wait()
				defer probe.Wait()
				begin := time.Now()
				row.change(x)
				_, err := x.one(time.Second)
				if took := time.Since(begin); took > row.within || row.within == time.Second && took < time.Second-maxLook {
					t.Errorf("after %v, want %v", took, row.within)
				}
				wantCause(t, err, row.cause)
			})
		})
	}
}

// Hundreds of calls that all have to connect do it a few at a time, and none of
// their handshakes fails for want of time.
func TestDialStorm(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), now.Add(1)))
			serving.Go(func() {
				<-release
				now.Add(-1)
				_ = c.Close()
			})
		}
	})
	e := newEndpoint(&origin{}, netip.MustParseAddrPort(listener.Addr().String()), breaker.Settings{})
	e.dialer = dialer{policy: AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, timeout: time.Minute, dial: dialTCP}
	e.origin.tls = newTestTLS()
	const calls = 4 * maxDials
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { _, _ = e.dial(time.Minute) })
	}
	for now.Load() < maxDials {
		if context.Cause(t.Context()) != nil {
			t.Fatal("too few dial")
		}
		<-time.After(time.Millisecond)
	}
	// Who gets no turn has tried nothing.
	_, err = e.dial(time.Millisecond)
	if kind := failed(err, &Call{Target: &Target{host: "policy"}}, time.Millisecond).kind; kind != breaker.NotSent {
		t.Errorf("kind %v: %v", kind, err)
	}
	close(release)
	all.Wait()
	_ = listener.Close()
	serving.Wait()
	if most.Load() > maxDials {
		t.Errorf("%d at a time", most.Load())
	}
}

func newTestTLS() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy"} }
