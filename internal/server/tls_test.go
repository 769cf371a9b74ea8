// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
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
