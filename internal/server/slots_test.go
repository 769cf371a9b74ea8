// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

// crowd is a world with 100 slots, in which nothing is closed for its age or for
// being slow.
func crowd(t *testing.T, change func(*server.Config)) *world {
	return newWorld(t, func(cfg *server.Config) {
		cfg.Connections, cfg.HeaderTimeout, cfg.BodyTimeout, cfg.IdleTimeout = 100, patience, patience, patience
		if change != nil {
			change(cfg)
		}
	})
}

var a, b = pki.Subject{CommonName: "a"}, pki.Subject{DNSNames: []string{"b.example.com"}}

// isAnswered makes a call as cluster b on a connection of its own.
func (w *world) isAnswered() *caller {
	w.t.Helper()
	c := w.dialAs(b)
	c.isAllowed(c.ask(message{target: "/v1/clusters/b/validate", body: review("1")}), "1")
	return c
}

// hoard opens n connections with what open does, and waits until they are
// counted.
func (w *world) hoard(n int, open func() *caller) []*caller {
	w.t.Helper()
	list := make([]*caller, n)
	for i := range list {
		list[i] = open()
	}
	w.eventually("the slots are taken", func() bool { return w.server.Connections() >= min(n, 87) })
	return list
}

// Whatever one cluster or a stranger does with the slots, another cluster gets
// as many as it needs, and keeps them.
func TestSlotsAreShared(t *testing.T) {
	stall := message{headers: "Content-Type: application/json\r\nContent-Length: 1000\r\n", body: "{"}
	for name, open := range map[string]func(w *world) *caller{
		"silent connections of a cluster": func(w *world) *caller { return w.dialAs(a) },
		"connections of a cluster that were used once": func(w *world) *caller {
			c := w.dialAs(a)
			c.isAllowed(c.ask(good("1")), "1")
			return c
		},
		"requests of a cluster that never end": func(w *world) *caller {
			c := w.dialAs(a)
			c.send(stall)
			return c
		},
		"connections of a certificate of nobody": func(w *world) *caller { return w.dialAs(pki.Subject{CommonName: "stranger"}) },
		"handshakes that never begin":            func(w *world) *caller { return w.dialPlain() },
	} {
		t.Run("A4 "+name, func(t *testing.T) {
			w := crowd(t, nil)
			w.hoard(120, func() *caller { return open(w) })
			kept := w.isAnswered()
			for range 20 {
				w.isAnswered()
			}
			w.hoard(120, func() *caller { return open(w) })
			kept.isAllowed(kept.ask(message{target: "/v1/clusters/b/validate", body: review("2")}), "2")
			if n := w.server.Connections(); n > 100 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
	t.Run("A4 connections without a certificate where it may be left out", func(t *testing.T) {
		w := crowd(t, func(cfg *server.Config) { cfg.TLS.ClientAuth = tls.VerifyClientCertIfGiven })
		w.hoard(120, func() *caller { return w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()}) })
		w.isAnswered()
	})
	t.Run("A4 a connection that a cluster has opened ahead of need", func(t *testing.T) {
		w := crowd(t, nil)
		ahead := w.dialAs(b)
		w.isAnswered() // the handshake of the other is over by then, or will be in time
		w.hoard(200, func() *caller { return w.dialPlain() })
		ahead.isAllowed(ahead.ask(message{target: "/v1/clusters/b/validate", body: review("1")}), "1")
	})
	t.Run("A4 a cluster with tokens", func(t *testing.T) {
		w := crowd(t, func(cfg *server.Config) { cfg.TLS.ClientAuth = tls.VerifyClientCertIfGiven })
		hoarded := w.hoard(87, func() *caller {
			c := w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()})
			c.isAllowed(c.ask(message{target: "/v1/clusters/token/validate", extra: "Authorization: Bearer " + token + "\r\n", body: review("1")}), "1")
			return c
		})
		w.hoard(20, func() *caller { return w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()}) })
		first := hoarded[0]
		first.isAllowed(first.ask(message{target: "/v1/clusters/token/validate", extra: "Authorization: Bearer " + token + "\r\n", body: review("2")}), "2")
	})
}

// A cluster with requests on all that it has gets no more than its share, and
// the one that is refused is its own.
func TestBusyClusterKeepsToItsShare(t *testing.T) {
	w := crowd(t, func(cfg *server.Config) { cfg.Connections = 8 })
	entered, release := w.judge.held()
	var of []*caller
	for range 7 {
		c := w.dialAs(a)
		c.send(good("1"))
		<-entered
		of = append(of, c)
	}
	refused := w.dialAs(a)
	_, _ = io.WriteString(refused, good("2").String())
	refused.isClosed()
	w.eventually("it is counted", func() bool { return w.turned.counts()["a too_many_connections"] > 0 })
	release()
	for _, c := range of {
		c.isAllowed(c.answer(), "1")
	}
	if n := w.turned.counts()["a too_many_connections"]; n != 1 {
		t.Errorf("%d are counted", n)
	}
}

// Among strangers the oldest makes way for the newest, in the order of their arrival,
// though none of them has said a word; the others lose nothing.
func TestStrangersGoInOrder(t *testing.T) {
	const slots, more = 8, 3
	w := crowd(t, func(cfg *server.Config) { cfg.Connections = slots })
	var silent []*caller
	for range slots + more {
		silent = append(silent, w.dialPlain())
	}
	for i, c := range silent {
		if i < more {
			c.isClosed()
			continue
		}
		cfg := w.clientTLS(a)
		cfg.ServerName = "127.0.0.1"
		conn := tls.Client(c.Conn, cfg)
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Errorf("stranger %d of %d is closed: %v", i+1, slots+more, err)
		}
	}
}

// The connection that makes way for another cluster's has been idle for longest: since
// its last answer, or since its handshake where it was never used. A request goes on.
func TestIdleConnectionsGoFirst(t *testing.T) {
	for range 5 { // the server may come to know of the end of an answer later than its caller
		if idleConnectionsGoFirst(t) {
			return
		}
	}
	t.Error("others make way")
}

func idleConnectionsGoFirst(t *testing.T) bool {
	w := crowd(t, func(cfg *server.Config) { cfg.Connections = 8 }) // 7 of them of clusters
	entered, release := make(chan struct{}), make(chan struct{})
	w.judge.do = func(_ context.Context, req dispatcher.Request) codec.Response {
		if string(req.Review.UID) == "long" {
			close(entered)
			<-release
		}
		return codec.Response{Allowed: true}
	}
	busy := w.dialAs(a)
	busy.send(good("long"))
	<-entered
	late := w.dialPlain() // with a handshake that comes after that of all others
	var idle []*caller
	for range 5 {
		c := w.dialAs(a)
		c.isAllowed(c.ask(good("1")), "1")
		idle = append(idle, c)
	}
	for range 3 { // it is longer ago for the others
		idle[0].isAllowed(idle[0].ask(good("2")), "2")
		idle[4].isAllowed(idle[4].ask(good("2")), "2")
	}
	cfg := w.clientTLS(a)
	cfg.ServerName = "127.0.0.1"
	used := newCaller(t, tls.Client(late.Conn, cfg))
	if err := used.Conn.(*tls.Conn).HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.isAnswered() // as b, and stays
	}
	w.eventually("they are counted", func() bool { return w.turned.counts()["a too_many_connections"] == 3 })
	close(release)
	for _, c := range []*caller{idle[0], idle[4], used} {
		c.send(good("3"))
	}
	for _, c := range []*caller{busy, idle[0], idle[4], used} {
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
	}
	return true
}

func TestConnectionAge(t *testing.T) {
	t.Run("an old connection ends with its answer, not before", func(t *testing.T) {
		w := newWorld(t, func(cfg *server.Config) { cfg.ConnectionAge = time.Nanosecond })
		c := w.dial() // it is as old as it may be, and idle
		got := c.ask(good("1"))
		c.isAllowed(got, "1")
		if !got.close {
			t.Error("no Connection: close")
		}
		c.isClosed()
		if n := w.server.ConnectionsAged(); n != 1 {
			t.Errorf("%d are counted", n)
		}
	})
	t.Run("a young one does not", func(t *testing.T) {
		w := newWorld(t, func(cfg *server.Config) { cfg.ConnectionAge = time.Hour })
		c := w.dial()
		for range 3 {
			if got := c.ask(good("1")); got.close {
				t.Error("Connection: close")
			}
		}
	})
}

// When replicas join, connections that were there before end with an answer each; those
// that come later stay.
func TestJoinedReplicas(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.JoinWindow = time.Nanosecond })
	old := w.dial()
	if got := old.ask(good("1")); got.close {
		t.Error("it is closed before anybody joins")
	}
	w.server.Joined()
	young := w.dial()
	got := old.ask(good("2"))
	old.isAllowed(got, "2")
	if !got.close || w.server.ConnectionsAged() != 1 {
		t.Errorf("the old connection stays, %d are counted", w.server.ConnectionsAged())
	}
	for range 3 {
		if young.ask(good("3")).close {
			t.Error("a connection that came later is closed")
		}
	}
}

// Heads that never end cost the buffers of a few, whoever sends them, and hold up
// nobody else's.
func TestHeadsAreShared(t *testing.T) {
	part := text("POST /v1/clusters/a/validate HTTP/1.1\r\nX: " + strings.Repeat("x", 30<<10))
	for name, open := range map[string]func(w *world) *caller{
		"of a cluster":                func(w *world) *caller { return w.dialAs(a) },
		"of a cluster that is served": func(w *world) *caller { c := w.dialAs(a); c.isAllowed(c.ask(good("1")), "1"); return c },
		"of a certificate nobody's":   func(w *world) *caller { return w.dialAs(pki.Subject{CommonName: "stranger"}) },
	} {
		t.Run("A4 "+name, func(t *testing.T) {
			w := crowd(t, nil)
			for range 60 {
				open(w).send(part)
			}
			w.eventually("the others are closed", func() bool { return w.server.Connections() <= 16 })
			w.isAnswered()
			if n := w.turned.counts()["a too_many_connections"] + w.turned.counts()[" too_many_connections"]; n < 44 {
				t.Errorf("%d are counted", n)
			}
		})
	}
	t.Run("A4 that are given up take nobody's place", func(t *testing.T) {
		w := crowd(t, nil)
		for range 40 {
			c := w.dialAs(a)
			c.isAllowed(c.ask(good("1")), "1")
			c.send(part)
			_ = c.Close()
			w.eventually("it is gone", func() bool { return w.server.Connections() == 0 })
		}
		if n := w.turned.counts()["a too_many_connections"]; n > 0 {
			t.Errorf("%d are counted", n)
		}
	})
	t.Run("A4 of another cluster", func(t *testing.T) {
		w := crowd(t, nil)
		slow := w.dialAs(b)
		first, rest, _ := strings.Cut(message{target: "/v1/clusters/b/validate", body: review("1")}.String(), "\r\n")
		slow.send(text(first))
		w.isAnswered() // the head of the other has been begun by then, or nearly
		for range 40 {
			w.dialAs(a).send(part)
		}
		w.eventually("the others are closed", func() bool { return w.server.Connections() <= 17 })
		slow.send(text("\r\n" + rest))
		slow.isAllowed(slow.answer(), "1")
	})
}
