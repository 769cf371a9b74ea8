// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
)

// Another authority of clients takes effect for the next connection; while its
// file is not whole, or is gone, the last good one stays, and that is said once.
func TestClientCAReload(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	address := p.awaitReady()
	allowed := func() bool {
		c := w.clientOf(address) // a new one: a connection of its own
		defer c.CloseIdleConnections()
		got, err := ask(c)
		return err == nil && got.allowed
	}
	if !allowed() {
		t.Fatal("the caller is not let in")
	}
	w.write("ca.crt", w.authority.PEM[:len(w.authority.PEM)/2])
	eventually(t, "half a file is logged", func() bool { return w.logged("holds no PEM certificate") || w.logged("incomplete PEM block") })
	if !allowed() {
		t.Error("half a file locks the caller out")
	}
	if n := w.loggedTimes("certificates refused"); n != 1 {
		t.Errorf("half a file is logged %d times", n)
	}
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	w.write("ca.crt", other.PEM)
	eventually(t, "the caller of the former authority is refused", func() bool { return !allowed() })
	w.write("ca.crt", append(other.PEM, w.authority.PEM...))
	eventually(t, "the caller is let in again", allowed)
}

// A certificate and a key of different pairs never take effect.
func TestCertificateOfAnotherKey(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	address := p.awaitReady()
	pair, err := w.authority.Issue(pki.Subject{CommonName: "successor", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("serving.crt", pair.Certificate)
	eventually(t, "the mismatch is logged", func() bool { return w.logged("private key does not match public key") })
	if name := servedName(t, w, address); name != "dispatcher" {
		t.Errorf("%s is served", name)
	}
	w.write("serving.key", pair.Key)
	eventually(t, "the new pair is served", func() bool { return servedName(t, w, address) == "successor" })
}
