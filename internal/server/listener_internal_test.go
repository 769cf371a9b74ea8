// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a listener that fails so often before each connection.
type failing struct {
	failures []int
	failed   int
}

func (f *failing) Accept() (net.Conn, error) {
	switch {
	case len(f.failures) == 0:
		return nil, net.ErrClosed
	case f.failed < f.failures[0]:
		f.failed++
		return nil, errors.New("too many open files")
	}
	f.failures, f.failed = f.failures[1:], 0
	near, _ := net.Pipe()
	return near, nil
}

func (f *failing) Close() error   { return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func listenerOn(ln net.Listener, connections int) *listener {
	cfg := Config{TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Connections: connections}.withDefaults()
	return newListener(ln, cfg, nil, &records{log: slog.New(slog.DiscardHandler), observer: unobserved{}})
}

// While accepting fails it is tried again after pauses that double, up to a second:
// neither is the processor kept busy, nor does a listener stay deaf when descriptors
// are there again. The next failure begins anew.
func TestPausesAfterFailedAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenerOn(&failing{failures: []int{0, 1, 4, 10, 1}}, 100)
		for i, want := range []time.Duration{
			0,
			5 * time.Millisecond,
			(5 + 10 + 20 + 40) * time.Millisecond,
			(5+10+20+40+80+160+320+640)*time.Millisecond + 2*time.Second,
			5 * time.Millisecond,
		} {
			begin := time.Now()
			if _, err := l.Accept(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("connection %d is accepted after %v, want %v", i, took, want)
			}
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("at the end: %v", err)
		}
	})
}

// Where strangers have all slots the next one waits until the oldest has had the time
// for its handshake, and no longer. The oldest is closed.
func TestCrowdedListenerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenerOn(&failing{failures: []int{0, 0, 0, 0}}, 2)
		accept := func() *conn {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c.(*conn)
		}
		first := accept()
		<-time.After(10 * time.Millisecond)
		second := accept()
		begin := time.Now()
		accept()
		if took := time.Since(begin); took != handshakeTime-10*time.Millisecond {
			t.Errorf("the third waits for %v", took)
		}
		if !isClosed(first) || isClosed(second) {
			t.Errorf("closed are the first: %t, the second: %t", isClosed(first), isClosed(second))
		}
		accept()
		if took := time.Since(begin); took != handshakeTime || !isClosed(second) {
			t.Errorf("the fourth waits until %v, and the second is closed: %t", took, isClosed(second))
		}
	})
}

// isClosed reports whether a connection was closed by us.
func isClosed(c *conn) bool { return c.raw.SetDeadline(time.Time{}) != nil }
