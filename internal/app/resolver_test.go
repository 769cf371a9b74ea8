// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
)

// A name that gets another address is followed without a reload. The new address is
// connected to before it is called.
func TestNamesAreFollowed(t *testing.T) {
	w := newWorld(t)
	before, after := listenAtBoth(t)
	w.serveAt(before, "before")
	connections := w.serveAt(after, "after")
	z, err := zone.Listen(zone.Zone{Addresses: zone.Addresses("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	_, port, _ := net.SplitHostPort(before.Addr().String())
	w.webhook.URL = "https://policy.example.com:" + port
	w.configure("policy")
	p := w.startFrom(fileConfig + fmt.Sprintf("lameDuck: 0s\nreloadInterval: 1h\ndns: {server: %q, interval: 20ms}\n", z.Address()))
	client := w.clientOf(p.awaitReady())
	decidedBy := func(name string) bool {
		v, err := ask(client)
		return err == nil && !v.allowed && strings.Contains(v.message, name+" says no")
	}
	if !decidedBy("before") {
		t.Fatal("the first address does not decide")
	}
	z.Set(zone.Zone{Addresses: zone.Addresses("127.0.0.2")})
	eventually(t, "the new address is connected to, with nothing to ask", func() bool { return connections.Load() == 1 })
	eventually(t, "the new address decides", func() bool { return decidedBy("after") })
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections to the new address", n)
	}
}

// listenAtBoth returns listeners on one port of 127.0.0.1 and 127.0.0.2.
func listenAtBoth(t *testing.T) (one, two net.Listener) {
	t.Helper()
	for range 10 {
		one, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(one.Addr().String())
		two, err = net.Listen("tcp", "127.0.0.2:"+port)
		if err == nil {
			return one, two
		}
		_ = one.Close()
		t.Log(err)
	}
	t.Skip("127.0.0.2 is no address of this host, or has no port that is free")
	return nil, nil
}

// serveAt starts a webhook that denies everything in its name, and counts connections.
func (w *world) serveAt(ln net.Listener, name string) *atomic.Int64 {
	w.t.Helper()
	connections := new(atomic.Int64)
	server := w.denying(name, pki.Subject{CommonName: name, DNSNames: []string{"policy.example.com"}})
	_ = server.Listener.Close()
	server.Listener = ln
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	return connections
}
