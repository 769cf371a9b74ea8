// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
)

func TestHarmless(t *testing.T) {
	w := newWorld(t)
	c := w.dial()
	c.expect("a", "one a", nil)
	c.expect("b", "one b", nil)
	got := w.proxy.Counters()
	if want := (proxy.Counters{Accepted: 1, Open: 1, ToTarget: 4, ToClient: 12}); got != want {
		t.Errorf("the counters are %+v, want %+v", got, want)
	}
	c.Conn.(*net.TCPConn).CloseWrite()
	if n, err := io.Copy(io.Discard, c.r); n != 0 || err != nil {
		t.Errorf("after a half-close %d bytes and %v came", n, err)
	}
}

func TestRetarget(t *testing.T) {
	w := newWorld(t)
	before := w.dial()
	before.expect("a", "one a", nil)
	w.proxy.Retarget(w.target("two"))
	w.dial().expect("b", "two b", nil)
	before.expect("c", "one c", nil)
}

func TestTargetIsGone(t *testing.T) {
	w := newWorld(t)
	gone := newWorld(t)
	gone.set(proxy.Fault{Refuse: true})
	w.proxy.Retarget(gone.proxy.Addr())
	w.expectReset()
}

func TestDoor(t *testing.T) {
	w := newWorld(t)
	existing := w.dial()
	existing.expect("a", "one a", nil)
	for range 20 {
		w.set(proxy.Fault{Refuse: true})
		if _, err := net.Dial("tcp4", w.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a closed door: %v", err)
		}
		existing.expect("b", "one b", nil)
		w.set(proxy.Fault{})
		w.dial().expect("c", "one c", nil)
	}
	w.set(proxy.Fault{Refuse: true, Sever: true})
	if _, err := existing.ask("d"); err == nil {
		t.Error("a connection survives its being severed")
	}
}

func TestBlackHole(t *testing.T) {
	w := newWorld(t)
	if err := w.proxy.Set(proxy.Fault{BlackHole: true}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	_, err := net.DialTimeout("tcp4", w.proxy.Addr(), silence)
	if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("a black hole: %v", err)
	}
	w.set(proxy.Fault{})
	w.dial().expect("a", "one a", nil)
}

// A Fault, what becomes of the second line on a connection, and what the target
// has heard.
func TestExchange(t *testing.T) {
	for name, row := range map[string]struct {
		fault  proxy.Fault
		answer string
		ends   error
		heard  string
		faults uint64
	}{
		"cut before the response":      {proxy.Fault{CutAt: 1}, "", io.EOF, "first\nsecond\n", 1},
		"cut in the response":          {proxy.Fault{CutAt: 7}, "one se", io.EOF, "first\nsecond\n", 1},
		"cut behind the response":      {proxy.Fault{CutAt: 12}, "one second", nil, "first\nsecond\n", 0},
		"corrupt":                      {proxy.Fault{CorruptAt: 2}, "o\x91e second", nil, "first\nsecond\n", 1},
		"reset before the request":     {proxy.Fault{ResetAtRequest: 1}, "", reset, "first\n", 1},
		"reset in the request":         {proxy.Fault{ResetAtRequest: 3}, "", reset, "first\nse", 1},
		"reset before the response":    {proxy.Fault{ResetAtResponse: 1}, "", reset, "first\nsecond\n", 1},
		"half-close":                   {proxy.Fault{HalfClose: true}, "", io.EOF, "first\nsecond\n", 1},
		"idle connection closed":       {proxy.Fault{CloseIdle: true}, "", io.EOF, "first\n", 1},
		"delays":                       {proxy.Fault{RequestDelay: time.Millisecond, ResponseDelay: time.Millisecond}, "one second", nil, "first\nsecond\n", 2},
		"trickle":                      {proxy.Fault{Trickle: proxy.Trickle{Bytes: 3, Every: time.Millisecond}}, "one second", nil, "first\nsecond\n", 1},
		"trickle, cut":                 {proxy.Fault{Trickle: proxy.Trickle{Bytes: 3, Every: time.Millisecond}, CutAt: 6}, "one s", io.EOF, "first\nsecond\n", 2},
		"nobody is in so small a part": {proxy.Fault{CutAt: 1, Share: 1e-15}, "one second", nil, "first\nsecond\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.dial()
			c.expect("first", "one first", nil)
			w.set(row.fault)
			c.expect("second", row.answer, row.ends)
			c.Close()
			w.await(row.heard)
			if got := w.proxy.Counters().Faults; got != row.faults {
				t.Errorf("%d faults were counted, want %d", got, row.faults)
			}
		})
	}
}

func TestSilence(t *testing.T) {
	w := newWorld(t)
	existing := w.dial()
	existing.expect("a", "one a", nil)
	w.set(proxy.Fault{Silent: true})
	existing.expectSilence("b", "")
	late := w.dial()
	late.expectSilence("c", "")
	w.set(proxy.Fault{})
	late.expectSilence("d", "")
	w.dial().expect("e", "one e", nil)
	w.await("a\ne\n")
}

func TestStall(t *testing.T) {
	w := newWorld(t)
	w.set(proxy.Fault{StallAt: 8})
	c := w.dial()
	c.expect("a", "one a", nil)
	c.expectSilence("b", "o")
}

func TestResetOnAccept(t *testing.T) {
	w := newWorld(t)
	w.set(proxy.Fault{ResetOnAccept: true})
	w.expectReset()
	w.await("")
}

func TestFlap(t *testing.T) {
	w := newWorld(t)
	w.set(proxy.Fault{Refuse: true, Flap: proxy.Flap{Up: 5 * time.Millisecond, Down: 5 * time.Millisecond}})
	ups, downs := 0, 0
	for deadline := time.Now().Add(patience); (ups == 0 || downs == 0) && time.Now().Before(deadline); {
		c, err := net.Dial("tcp4", w.proxy.Addr())
		if err == nil {
			ups++
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, reset) { // the latter just as it closes
			downs++
		} else {
			t.Fatal(err)
		}
	}
	if ups == 0 || downs == 0 {
		t.Errorf("%d times up, %d times down", ups, downs)
	}
}

func TestNonsense(t *testing.T) {
	w := newWorld(t)
	for _, f := range []proxy.Fault{
		{Refuse: true, BlackHole: true},
		{CutAt: -1},
		{ResponseDelay: -1},
		{Flap: proxy.Flap{Up: 1}},
		{Trickle: proxy.Trickle{Bytes: 1}},
		{Share: 1.5},
	} {
		if w.proxy.Set(f) == nil {
			t.Errorf("%+v makes sense", f)
		}
	}
	w.proxy.Close()
	if err := w.proxy.Set(proxy.Fault{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Set after Close: %v", err)
	}
}

// Who is hit depends on the seed alone, and is as many as were asked for.
func TestShare(t *testing.T) {
	hit := func(seed uint64) (who [200]bool, n int) {
		w := newWorld(t)
		w.set(proxy.Fault{CorruptAt: 1, Share: 0.2, Seed: seed})
		c := w.dial()
		for i := range who {
			if answer, err := c.ask("a"); err != nil {
				t.Fatal(err)
			} else if answer != "one a" {
				who[i] = true
				n++
			}
		}
		return who, n
	}
	first, n := hit(1)
	again, _ := hit(1)
	other, _ := hit(2)
	if first != again || first == other {
		t.Error("the seed does not decide who is hit")
	}
	if n < 20 || n > 60 {
		t.Errorf("%d of 200 were hit, want about 40", n)
	}
}
