// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
)

// The bytes of an exchange are counted from where the handshake ends, with and
// without a client certificate: the reset hits the first request and not the
// handshake.
func TestHandshake(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Subject{DNSNames: []string{"target"}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		version uint16
		auth    tls.ClientAuthType
	}{
		"TLS 1.3":                     {tls.VersionTLS13, tls.NoClientCert},
		"TLS 1.3, client certificate": {tls.VersionTLS13, tls.RequireAnyClientCert},
		"TLS 1.2":                     {tls.VersionTLS12, tls.NoClientCert},
		"TLS 1.2, client certificate": {tls.VersionTLS12, tls.RequireAnyClientCert},
	} {
		t.Run(name, func(t *testing.T) {
			server := &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: row.auth, MaxVersion: row.version, SessionTicketsDisabled: true}
			client := &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authority.Pool(), ServerName: "target"}
			w := newWorld(t)
			w.proxy.Retarget(w.tlsTarget(server))
			w.set(proxy.Fault{ResetAtRequest: 1, CloseIdle: true})
			c := tls.Client(w.dial(), client)
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			if got := w.proxy.Counters().Faults; got != 0 {
				t.Errorf("%d faults in the handshake", got)
			}
			io.WriteString(c, "a\n")
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, reset) {
				t.Errorf("the request meets %v", err)
			}
			w.await("")
			w.set(proxy.Fault{CutAt: 1 << 20})
			whole := tls.Client(w.dial(), client)
			if _, err := io.WriteString(whole, "b\n"); err != nil {
				t.Error(err)
			}
			if _, err := whole.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
			whole.Close()
		})
	}
}

// tlsTarget is a target behind TLS.
func (w *world) tlsTarget(cfg *tls.Config) string {
	plain := w.target("tls")
	l, err := tls.Listen("tcp4", "127.0.0.1:0", cfg)
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go join(c, plain)
		}
	}()
	w.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// join connects c to a plain target.
func join(c net.Conn, target string) {
	defer c.Close()
	back, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	defer back.Close()
	go io.Copy(c, back)
	io.Copy(back, c)
}
