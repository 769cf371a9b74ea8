// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// isCut fails the test unless the server breaks the TLS connection off with an
// alert and without a byte of HTTP.
func isCut(t *testing.T, w *world, cfg *tls.Config) {
	t.Helper()
	c, err := tls.Dial("tcp", w.addr, cfg)
	if err == nil {
		caller := newCaller(t, c)
		caller.send(good("1")) // in TLS 1.3 the client is done before the server has judged it
		var n int
		if n, err = caller.Read(make([]byte, 1)); n > 0 {
			t.Error("the server has answered")
		}
	}
	if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
		t.Errorf("error %v, want a TLS alert", err)
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("A1 no client certificate", func(t *testing.T) {
		isCut(t, w, &tls.Config{RootCAs: w.ca.Pool()})
	})
	t.Run("A1 other CA", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.Certificates[0] = w.issue(newAuthority(t), pki.Subject{CommonName: "a"})
		isCut(t, w, &tls.Config{RootCAs: w.ca.Pool(), GetClientCertificate: always(cfg.Certificates[0])})
	})
	t.Run("A1 expired", func(t *testing.T) {
		isCut(t, w, w.clientTLS(pki.Subject{CommonName: "a", NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}))
	})
	t.Run("A2 TLS 1.1", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		_, err := tls.Dial("tcp", w.addr, cfg)
		if err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
			t.Errorf("error %v, want the alert protocol_version", err)
		}
	})
	t.Run("A3 plain HTTP", func(t *testing.T) {
		c := w.dialPlain()
		c.send(good("1"))
		got, _ := io.ReadAll(c)
		if bytes.Contains(got, []byte("200")) {
			t.Errorf("answer %q", got)
		}
	})
	t.Run("HTTP/1.1 is all there is", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.NextProtos = []string{"h2", "http/1.1"}
		c, err := tls.Dial("tcp", w.addr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
			t.Errorf("protocol %q", got)
		}
	})
	t.Run("no list of authorities, no resumption", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		own := cfg.Certificates[0]
		cfg.Certificates, cfg.ClientSessionCache = nil, tls.NewLRUClientSessionCache(1)
		cfg.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if n := len(request.AcceptableCAs); n > 0 {
				t.Errorf("%d authorities are listed", n)
			}
			return &own, nil
		}
		for range 2 {
			c := w.dialTLS(cfg)
			c.send(text("GET / HTTP/1.1\r\n\r\n")) // the answer brings a session, if there is one
			c.answer()
			if c.Conn.(*tls.Conn).ConnectionState().DidResume {
				t.Error("a session is resumed")
			}
		}
	})
	w.judge.none(t)
}

// A caller whose certificate is refused, and who has sent more by then than the server
// has read, reads why, and that nothing more comes: its connection is not reset.
func TestRefusedCertificateIsNoReset(t *testing.T) {
	w := newWorld(t, nil)
	plain := w.dialPlain()
	c := tls.Client(plain.Conn, &tls.Config{
		RootCAs: w.ca.Pool(), ServerName: "127.0.0.1", GetClientCertificate: always(w.issue(newAuthority(t), pki.Subject{CommonName: "a"})),
	})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, 256<<10)); err != nil {
		t.Errorf("write: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
		t.Errorf("error %v, want a TLS alert", err)
	}
	if _, err := io.Copy(io.Discard, plain.Conn); err != nil {
		t.Errorf("then %v, want the end", err)
	}
}

// Whatever configuration is given, by connection too, TLS 1.2 is the oldest, no session
// is resumed, and the names of no authorities are sent.
func TestTLSIsHardened(t *testing.T) {
	lax := func(cfg *server.Config) {
		cfg.TLS.MinVersion = tls.VersionTLS10
		cfg.TLS.ClientCAs = newAuthority(t).Pool()
		cfg.TLS.SetSessionTicketKeys([][32]byte{{1}})
	}
	for name, change := range map[string]func(*server.Config){
		"given": lax,
		"chosen": func(cfg *server.Config) {
			lax(cfg)
			chosen := cfg.TLS
			cfg.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			old := w.clientTLS(pki.Subject{CommonName: "a"})
			old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
			if _, err := tls.Dial("tcp", w.addr, old); err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
				t.Errorf("TLS 1.1: error %v, want the alert protocol_version", err)
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				cfg := w.clientTLS(pki.Subject{CommonName: "a"})
				own := cfg.Certificates[0]
				cfg.MinVersion, cfg.MaxVersion = version, version
				cfg.Certificates, cfg.ClientSessionCache = nil, tls.NewLRUClientSessionCache(1)
				cfg.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if n := len(request.AcceptableCAs); n > 0 {
						t.Errorf("%d authorities are listed", n)
					}
					return &own, nil
				}
				for range 2 {
					c := w.dialTLS(cfg)
					c.isAllowed(c.ask(good("1")), "1") // the answer brings a session, if there is one
					if c.Conn.(*tls.Conn).ConnectionState().DidResume {
						t.Error("a session is resumed")
					}
				}
			}
		})
	}
}

// Where a configuration is chosen by connection, none means the one that is given, and
// an error ends the handshake, whatever else is returned.
func TestChoiceOfTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		chosen bool
		err    error
		served bool
	}{
		"one":              {true, nil, true},
		"none":             {false, nil, true},
		"one and an error": {true, errors.New("no"), false},
		"an error":         {false, errors.New("no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(cfg *server.Config) {
				base := cfg.TLS
				cfg.TLS = base.Clone()
				cfg.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
					if tt.chosen {
						return base, tt.err
					}
					return nil, tt.err
				}
			})
			if tt.served {
				c := w.dial()
				c.isAllowed(c.ask(good("1")), "1")
				return
			}
			isCut(t, w, w.clientTLS(pki.Subject{CommonName: "a"}))
		})
	}
}

// A bug of ours in the verification of one certificate ends that handshake, and nothing
// else.
func TestPanicInTheHandshake(t *testing.T) {
	var bug atomic.Bool
	w := newWorld(t, func(cfg *server.Config) {
		trusted := cfg.Authorities
		cfg.Authorities = func() *trust.Authorities {
			if bug.Load() {
				panic("bug")
			}
			return trusted()
		}
	})
	before := w.dial()
	before.isAllowed(before.ask(good("1")), "1")
	bug.Store(true)
	isCut(t, w, w.clientTLS(pki.Subject{CommonName: "a"}))
	w.judge.forget()
	before.isAllowed(before.ask(good("2")), "2")
	if log := strings.Join(w.logs.lines(), "\n"); strings.Count(log, "panic while handling a request") != 1 {
		t.Errorf("the panic is not recorded: %s", log)
	}
	bug.Store(false)
	after := w.dial()
	after.isAllowed(after.ask(good("3")), "3")
}

// always makes a client send a certificate that the server has not asked for.
func always(c tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
}

func TestPerConnectionTLS(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) {
		chosen := cfg.TLS
		cfg.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }}
	})
	t.Run("A2 TLS 1.1, configuration chosen by connection", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		if _, err := tls.Dial("tcp", w.addr, cfg); err == nil {
			t.Error("TLS 1.1 was accepted")
		}
	})
	c := w.dial()
	c.isAllowed(c.ask(good("1")), "1")
}

// A connection lives longer than its certificate may: what expires between two
// requests is refused with the second.
func TestCertificateExpiresOnAnOpenConnection(t *testing.T) {
	w := newWorld(t, nil)
	for lifetime := 2 * time.Second; ; lifetime *= 2 { // until this machine is quick enough
		cfg := w.clientTLS(pki.Subject{CommonName: "a", NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime)})
		conn, err := tls.Dial("tcp", w.addr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := newCaller(t, conn)
		c.send(good("1"))
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		<-time.After(time.Until(cfg.Certificates[0].Leaf.NotAfter) + time.Millisecond)
		c.refusedWith(c.ask(good("2")), http.StatusForbidden)
		return
	}
}
