// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
)

// endless is more often than a row lasts for.
const endless = 1 << 20

// byteByByte makes the proxies exact: they take what comes before an answer for it.
func byteByByte(w *world) {
	for _, e := range w.hurt {
		e.WithoutTickets()
	}
}

// inTurn sets one fault after the other, each for a while.
func inTurn(each time.Duration, set func(proxy.Fault) func(*world), faults ...proxy.Fault) func(*world) {
	return func(w *world) {
		w.harm = &harm{each: make([]uint64, len(faults))}
		w.every(each, endless, func(i int) {
			w.harm.turn(i, w.hits())
			set(faults[i%len(faults)])(w)
		})
	}
}

// harm is what each of some faults in turn has done.
type harm struct {
	mu    sync.Mutex
	each  []uint64 // hits of each
	whose int
	hits  uint64 // of all, until its turn began
}

// turn ends that of the fault before, when there were so many hits of all.
func (h *harm) turn(next int, hits uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each[h.whose] += hits - h.hits
	h.whose, h.hits = next%len(h.each), hits
}

// hits is how often the proxies have done harm.
func (w *world) hits() uint64 {
	var n uint64
	for _, e := range w.hurt {
		n += e.proxy.Counters().Faults
	}
	return n
}

// eachHitAtLeast: each of the faults in turn has done harm n times at least.
func eachHitAtLeast(n uint64) func(*findings, *world, *record) {
	return func(t *findings, w *world, _ *record) {
		w.harm.turn(w.harm.whose, w.hits())
		progress("%d exchanges were hit by each fault", w.harm.each)
		for i, hits := range w.harm.each {
			if hits < n {
				t.Errorf("%d exchanges were hit by fault %d, fewer than %d", hits, i+1, n)
			}
		}
	}
}

// wasHit: the proxies have done harm n times at least, so that the row has seen what
// it is about.
func wasHit(t *findings, w *world, n uint64) {
	hits := w.hits()
	progress("%d exchanges were hit", hits)
	if hits < n {
		t.Errorf("%d exchanges were hit, fewer than %d", hits, n)
	}
}

func hitAtLeast(n uint64) func(*findings, *world, *record) {
	return func(t *findings, w *world, _ *record) { wasHit(t, w, n) }
}

// One of two faults that never does harm is not made up for by the other.
func TestEachIsHit(t *testing.T) {
	h := &harm{each: make([]uint64, 2)}
	for turn, hits := range []uint64{0, 9, 9, 18, 18} {
		h.turn(turn, hits)
	}
	if !slices.Equal(h.each, []uint64{18, 0}) {
		t.Errorf("%d hits of each", h.each)
	}
	said := findingsOf(t, func(f *findings) { eachHitAtLeast(5)(f, &world{harm: &harm{each: h.each}}, nil) })
	if want := []string{"0 exchanges were hit by fault 2, fewer than 5"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// askedOnce: a review that was cut off by a webhook with side effects has arrived
// there, once, and its failure is told.
func askedOnce(t *findings, w *world, rec *record) {
	asked := map[string]int{}
	for _, a := range rec.attempts {
		if a.Webhook == hurtFail {
			asked[a.UID]++
		}
	}
	cut := 0
	for _, c := range rec.affected() {
		if !strings.Contains(c.Message, fmt.Sprintf("failed calling webhook %q", hurtFail)) || strings.Contains(c.Message, "BreakerOpen") {
			continue
		}
		cut++
		if asked[c.UID] != 1 {
			t.Errorf("cut off, and called %d times:\n%s", asked[c.UID], rec.story(c.UID))
		}
	}
	if cut < 5 {
		t.Errorf("only %d calls were cut off", cut)
	}
	eachHitAtLeast(5)(t, w, rec)
}

// nastyForms are bad ways to answer, and what they make of a call.
var nastyForms = []struct {
	set   func(*world)
	cause history.Cause
}{
	{behave(script.Behaviour{Form: script.Huge}), history.BadAnswer},
	{behave(script.Behaviour{Form: script.Cut}), history.BadAnswer},
	{behave(script.Behaviour{Form: script.Headers}), history.BadAnswer},
	{behave(script.Behaviour{Form: script.Informal}), history.BadAnswer},
	{behave(script.Behaviour{Form: script.NotJSON}), history.BadAnswer},
	{behave(script.Behaviour{Form: script.OtherUID}), history.BadAnswer},
	{all(proxy.Fault{Trickle: proxy.Trickle{Bytes: 1, Every: 100 * time.Millisecond}}), history.Timeout},
}

// nasty answers in one bad way after the other.
func nasty(w *world) {
	w.every(nastyEvery, endless, func(i int) {
		behave(script.Behaviour{})(w)
		all(proxy.Fault{})(w)
		nastyForms[i%len(nastyForms)].set(w)
	})
}

const nastyEvery = 700 * time.Millisecond

// nastyExcuses are those of each bad way, while webhooks answer so.
var nastyExcuses = func() []excuse {
	const late = 100 * time.Millisecond // may the next way begin
	var list []excuse
	for i := range sized(1, 10) * len(nastyForms) {
		cause, from := nastyForms[i%len(nastyForms)].cause, time.Duration(i)*nastyEvery
		list = append(list, excuse{causes: []history.Cause{cause}, from: from, until: from + nastyEvery + late, cuts: cause == history.Timeout})
	}
	return list
}()

// everyForm: webhooks were called in each of the bad ways.
func everyForm(t *findings, w *world, rec *record) {
	for i := range nastyForms {
		from, n := rec.broken+time.Duration(i)*nastyEvery, 0
		for _, a := range rec.attempts {
			if a.Webhook == hurtFail && a.Arrived >= from && a.Arrived < from+nastyEvery {
				n++
			}
		}
		if n == 0 {
			t.Errorf("nobody was called in the bad way %d", i)
		}
	}
	wasHit(t, w, 1)
}

// lostZones are ways in which DNS breaks, each for a while.
var lostZones = []zone.Zone{
	{Silent: true}, {}, {Failing: true}, {Addresses: home.Addresses, Delay: 5 * time.Second}, {Addresses: zone.Addresses("169.254.169.254")},
}

const zoneLasts = 800 * time.Millisecond

// loseNames breaks DNS in one way after the other.
func loseNames(w *world) {
	w.asked = nil
	w.every(zoneLasts, len(lostZones), func(i int) {
		w.asked = append(w.asked, w.names.Queries())
		w.names.Set(lostZones[i])
	})
}

// oneByName leaves one webhook that is found by name. Targets with the same name share
// their lookups, and a shared one that hangs outlives its timeout: for as long as the
// name server is silent, the other zones would not be seen.
func oneByName() []history.Webhook {
	return slices.DeleteFunc((&row{timeout: 5}).webhooks(), func(h history.Webhook) bool { return h.Name == hurtIgnore })
}

// everyZone: the dispatcher has met DNS in each of the ways in which it was broken.
func everyZone(t *findings, w *world, _ *record) {
	now := w.names.Queries()
	asked := append(w.asked, now)
	for i, z := range lostZones {
		if asked[i+1] == asked[i] {
			t.Errorf("no name was looked up in %+v", z)
		}
	}
}

// moveHome lets the name lead to another address, where the webhooks are as well.
func moveHome(w *world) {
	const elsewhere = "127.0.0.2"
	_, port, _ := net.SplitHostPort(w.hurt[0].proxy.Addr())
	ln, err := net.Listen("tcp", net.JoinHostPort(elsewhere, port))
	w.must(err)
	w.t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			w.moved.Add(1)
			go forward(conn, w.hurt[0].proxy.Addr())
		}
	}()
	w.names.Set(zone.Zone{Addresses: zone.Addresses(elsewhere)})
}

// forward carries bytes both ways until either side ends.
func forward(from net.Conn, address string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// namesAreRare: names are looked up as often as is configured, not as often as
// webhooks are called, and where they lead in the end is followed.
func namesAreRare(t *findings, w *world, rec *record) {
	expected := int(w.now() / namesEvery)
	if n := w.names.Queries(); n > 3*expected { // of two kinds each; jitter
		t.Errorf("%d questions to the name server, %d were due", n, expected)
	}
	if n := w.moved.Load(); n == 0 {
		t.Error("the webhooks have moved, and were not called at their new address")
	}
}

const namesEvery = 250 * time.Millisecond

// leaving is how strangers' connections end.
type leaving struct {
	opened, closed atomic.Int64
	longest        atomic.Int64 // that one was open
}

// strangers connect and stay: a third says nothing, a third says half of a TLS
// handshake, a third goes on to say a little of it.
func strangers(n int) func(*world) {
	return func(w *world) {
		hello := slices.Concat([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 501)) // half of it
		for i := range n {
			c, err := net.Dial("tcp", w.servers[0].address)
			if err != nil {
				continue
			}
			w.strangers.opened.Add(1)
			begin := time.Now()
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = io.Copy(io.Discard, c)
				w.strangers.closed.Add(1)
				took := int64(time.Since(begin))
				for most := w.strangers.longest.Load(); took > most && !w.strangers.longest.CompareAndSwap(most, took); {
					most = w.strangers.longest.Load()
				}
			}()
			switch i % 3 {
			case 1:
				_, _ = c.Write(hello[:len(hello)/2])
			case 2:
				go func() {
					for _, b := range hello {
						if _, err := c.Write([]byte{b}); err != nil {
							return
						}
						select {
						case <-over:
							return
						case <-time.After(100 * time.Millisecond):
						}
					}
				}()
			}
			w.t.Cleanup(func() {
				_ = c.Close()
				<-over
			})
		}
	}
}

// besieged has n strangers connect and send nothing, and connect again a second after
// they are closed, as long as the row lasts. When they hold as many descriptors as they
// get, all other connections are reset: callers and webhooks then need new ones.
func besieged(n int) func(*world) {
	return func(w *world) {
		ctx, d := w.t.Context(), w.servers[0]
		var crowd sync.WaitGroup
		w.t.Cleanup(crowd.Wait)
		for range n {
			crowd.Go(func() {
				for ctx.Err() == nil {
					if c, err := net.Dial("tcp", d.address); err == nil {
						stop := context.AfterFunc(ctx, func() { _ = c.Close() })
						_, _ = io.Copy(io.Discard, c)
						stop()
						_ = c.Close()
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			})
		}
		var was int
		if !eventually(func() bool {
			pass(200 * time.Millisecond)
			before := was
			was, _ = descriptors(d)
			return was > 100 && was <= before
		}) {
			w.t.Error("the strangers take no descriptors")
		}
		progress("F32  %d descriptors are open", was)
		all(proxy.Fault{Sever: true})(w)
		w.must(w.front.Set(proxy.Fault{Sever: true}))
	}
}

// strangersLeft: strangers' connections were closed after the time that they have.
func strangersLeft(n int64) func(*findings, *world, *record) {
	return func(t *findings, w *world, _ *record) {
		s := &w.strangers
		progress("F28  %d strangers, %d connections closed, within %v", s.opened.Load(), s.closed.Load(), time.Duration(s.longest.Load()).Round(time.Millisecond))
		if s.opened.Load() < n || s.closed.Load() < s.opened.Load() {
			t.Errorf("of %d strangers' connections %d were closed", s.opened.Load(), s.closed.Load())
		}
		if took := time.Duration(s.longest.Load()); took > strangersHave+time.Second {
			t.Errorf("a stranger's connection was open for %v, it has %v", took, strangersHave)
		}
	}
}

const strangersHave = time.Second
