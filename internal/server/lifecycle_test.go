// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

// held makes the judge wait for release in every decision, or for the end of
// its context.
func (j *judge) held() (entered <-chan struct{}, release func()) {
	in, out := make(chan struct{}, 10), make(chan struct{})
	j.do = func(ctx context.Context, _ dispatcher.Request) codec.Response {
		in <- struct{}{}
		select {
		case <-out:
		case <-ctx.Done():
		}
		return codec.Response{Allowed: true}
	}
	return in, func() { close(out) }
}

func TestLameDuck(t *testing.T) {
	w := newWorld(t, nil)
	c, other := w.dial(), w.dial()
	if got := c.ask(good("1")); got.close {
		t.Error("Connection: close in normal times")
	}
	w.server.LameDuck()
	got := c.ask(good("2"))
	c.isAllowed(got, "2")
	if !got.close {
		t.Error("no Connection: close")
	}
	c.isClosed()
	other.isAllowed(other.ask(good("3")), "3")
}

func TestShutdownDrains(t *testing.T) {
	w := newWorld(t, nil)
	entered, release := w.judge.held()
	c := w.dial()
	c.send(good("1"))
	<-entered
	done := make(chan error, 1)
	go func() { done <- w.server.Shutdown(t.Context()) }()
	if err := <-w.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	w.served <- nil
	// Somebody else may have got the port by now: only our own certificate counts.
	late, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", w.addr, w.clientTLS(pki.Subject{CommonName: "a"}))
	if err == nil {
		_ = late.Close()
		t.Error("new connections are accepted")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned %v with a request in flight", err)
	default:
	}
	release()
	got := c.answer()
	c.isAllowed(got, "1")
	if !got.close {
		t.Error("no Connection: close")
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	w := newWorld(t, nil)
	entered, _ := w.judge.held()
	c := w.dial()
	c.send(good("1"))
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	c.isClosed() // and the judge's context is done, or goleak complains
}

// kube-apiserver's client opens connections ahead of need: one on which nothing
// was ever sent, or whose handshake has not begun, must not hold up the end for as
// long as it may take.
func TestShutdownClosesUnusedConnections(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.HeaderTimeout, cfg.IdleTimeout = time.Hour, time.Hour })
	unused, idle, silent := w.dial(), w.dial(), w.dialPlain()
	idle.isAllowed(idle.ask(good("1")), "1")
	w.eventually("all are accepted", func() bool { return w.server.Connections() == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	unused.isClosed()
	idle.isClosed()
	silent.isClosed()
}

func TestShutdownBeforeServe(t *testing.T) {
	w := newWorld(t, nil)
	s := server.New(w.config())
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Serve(listen(t)); err != nil {
		t.Error(err)
	}
}
