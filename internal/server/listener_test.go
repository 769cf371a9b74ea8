// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

// besiege plays what hangs fasthttp's own connection limit: with the one place
// taken by a silent client, another silent one knocks, and then the place
// becomes free. It reports whether a good client is served, in the time given.
func besiege(t *testing.T, addr string, good *tls.Config, within time.Duration) bool {
	t.Helper()
	knock := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	inside := knock()
	knock()
	_ = inside.Close()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		if isServed(addr, good, deadline) {
			return true
		}
	}
	return false
}

// isServed makes one attempt: the place may not be free yet.
func isServed(addr string, cfg *tls.Config, deadline time.Time) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(deadline)
	cfg = cfg.Clone()
	cfg.ServerName = "127.0.0.1"
	secure := tls.Client(c, cfg)
	if _, err := io.WriteString(secure, good("1").String()); err != nil {
		return false
	}
	got := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(secure, got)
	return err == nil && string(got) == "HTTP/1.1 200"
}

func TestConnectionLimit(t *testing.T) {
	one := func(cfg *server.Config) {
		cfg.Connections = 1
		cfg.HeaderTimeout = patience
	}
	t.Run("A4 a silent client with every slot taken", func(t *testing.T) {
		w := newWorld(t, one)
		if !besiege(t, w.addr, w.clientTLS(pki.Subject{CommonName: "a"}), patience) {
			t.Error("nobody is served any more")
		}
	})
	t.Run("A4 the scenario hangs fasthttp's own limit", func(t *testing.T) {
		w := newWorld(t, nil)
		naive := &fasthttp.Server{
			Concurrency:   1,
			Handler:       func(*fasthttp.RequestCtx) {},
			NoDefaultDate: true, // the date has a goroutine that never ends
			Logger:        log.New(io.Discard, "", 0),
		}
		ln := listen(t)
		served := make(chan error, 1)
		go func() { served <- naive.Serve(tls.NewListener(ln, w.serverTLS(tls.NoClientCert))) }()
		t.Cleanup(func() { <-served }) // not before the silent client is gone
		if besiege(t, ln.Addr().String(), &tls.Config{RootCAs: w.ca.Pool()}, 300*time.Millisecond) {
			t.Error("fasthttp is cured: the limit could stand in it")
		}
		_ = ln.Close()
	})
	t.Run("A4 one too many is closed without a byte, others are unaffected", func(t *testing.T) {
		w := newWorld(t, one)
		first := w.dial()
		first.isAllowed(first.ask(good("1")), "1")
		w.dialPlain().isClosed()
		first.isAllowed(first.ask(good("2")), "2")
	})
	t.Run("A4 a place becomes free when its time is over", func(t *testing.T) {
		w := newWorld(t, func(cfg *server.Config) {
			cfg.Connections, cfg.HeaderTimeout = 3, 100*time.Millisecond
		})
		steady := w.dial()
		steady.isAllowed(steady.ask(good("1")), "1")
		silent := w.dialPlain()
		silent.isClosed()
		deadline := time.Now().Add(patience)
		for !isServed(w.addr, w.clientTLS(pki.Subject{CommonName: "a"}), deadline) {
			if time.Now().After(deadline) {
				t.Fatal("the place is still taken")
			}
		}
		steady.isAllowed(steady.ask(good("2")), "2")
	})
	t.Run("F28 500 idle strangers", func(t *testing.T) {
		w := newWorld(t, func(cfg *server.Config) { cfg.HeaderTimeout = 300 * time.Millisecond })
		strangers := make([]*caller, 500)
		for i := range strangers {
			strangers[i] = w.dialPlain()
		}
		c := w.dial()
		c.isAllowed(c.ask(good("1")), "1")
		for _, s := range strangers {
			s.isClosed()
		}
		c.isAllowed(c.ask(good("2")), "2")
	})
}

// brittle is a listener whose first accepts fail.
type brittle struct {
	net.Listener
	failures atomic.Int32
}

func (b *brittle) Accept() (net.Conn, error) {
	if b.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return b.Listener.Accept()
}

func TestAcceptGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	s := server.New(w.config())
	ln := &brittle{Listener: listen(t)}
	ln.failures.Store(3)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Run("F32 after failed accepts", func(t *testing.T) {
		c, err := tls.Dial("tcp", ln.Addr().String(), w.clientTLS(pki.Subject{CommonName: "a"}))
		if err != nil {
			t.Fatal(err)
		}
		caller := newCaller(t, c)
		caller.isAllowed(caller.ask(good("1")), "1")
		if lines := w.logs.lines(); !strings.Contains(lines[0], "too many open files") {
			t.Errorf("the failure is not recorded: %q", lines)
		}
	})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
