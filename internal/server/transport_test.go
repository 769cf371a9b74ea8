// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/registry"
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

func TestIdentity(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.TLS.ClientAuth = tls.VerifyClientCertIfGiven })
	anyone := &tls.Config{RootCAs: w.ca.Pool()}
	a, b, stranger := pki.Subject{CommonName: "a"}, pki.Subject{DNSNames: []string{"b.example.com"}}, pki.Subject{CommonName: "x"}
	const bearer, wrong = "Authorization: Bearer " + token + "\r\n", "Authorization: Bearer wrong\r\n"
	for _, tt := range []struct {
		name, cluster, extra string
		subject              *pki.Subject
		served               bool
	}{
		{"certificate by common name", "a", "", &a, true},
		{"certificate by DNS name", "b", "", &b, true},
		{"certificate by URI", "a", "", &pki.Subject{URIs: []string{"spiffe://example.com/a"}}, true},
		{"token", "token", bearer, nil, true},
		{"token, scheme in other case", "token", "Authorization: bearer " + token + "\r\n", nil, true},
		{"nothing, where anybody is welcome", "open", "", nil, true},
		{"A5 certificate of a on the path of b", "b", "", &a, false},
		{"A5 unknown cluster", "nowhere", "", &a, false},
		{"A5 certificate of nobody", "a", "", &stranger, false},
		{"A5 nothing", "a", "", nil, false},
		{"A5 token on another path", "a", bearer, nil, false},
		{"A5 wrong token", "token", wrong, nil, false},
		{"A5 other scheme", "token", "Authorization: Basic " + token + "\r\n", nil, false},
		{"A5 empty token", "token", "Authorization: Bearer \r\n", nil, false},
		{"A5 two tokens", "token", bearer + bearer, nil, false},
		{"A5 certificate and token of different clusters", "a", bearer, &a, false},
		{"A5 certificate and token of different clusters, other path", "token", bearer, &a, false},
		{"A5 certificate and wrong token", "a", wrong, &a, false},
		{"A5 certificate of nobody and token", "token", bearer, &stranger, false},
		{"A5 certificate of another where anybody is welcome", "open", "", &a, false},
		{"A5 wrong token where anybody is welcome", "open", wrong, nil, false},
		{"A18 headers that name another cluster", "b", "X-Cluster: b\r\nAdmission-Cluster: b\r\nX-Forwarded-Host: b\r\n", &a, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := anyone
			if tt.subject != nil {
				cfg = w.clientTLS(*tt.subject)
			}
			c := w.dialTLS(cfg)
			got := c.ask(message{target: "/v1/clusters/" + tt.cluster + "/validate", extra: tt.extra, body: review("1")})
			if tt.served {
				c.isAllowed(got, "1")
				return
			}
			c.refusedWith(got, http.StatusForbidden)
			if want := "the credentials are not those of this cluster\n"; got.body != want {
				t.Errorf("body %q, want %q", got.body, want)
			}
		})
	}
}

func TestHostAndServerNameAreIgnored(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("A18 Host and SNI naming another cluster", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.ServerName, cfg.InsecureSkipVerify = "b.example.com", true
		c := w.dialTLS(cfg)
		c.send(text(strings.Replace(good("1").String(), "Host: dispatcher", "Host: b.example.com\r\nX-Cluster: b", 1)))
		c.isAllowed(c.answer(), "1")
		if got := w.judge.last(t).cluster; got != "a" {
			t.Errorf("decided for cluster %q", got)
		}
	})
}

func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	for _, target := range []string{
		"/", "/livez", "/readyz", "/metrics", "/debug/pprof/", "/v1/clusters", "/v1/clusters/a", "/v1/clusters/a/",
		"/v1/clusters/a/validate/", "/v1/clusters/a/validate/x", "/v1/clusters/a/Validate", "/v1/clusters//validate",
		"/v1/clusters/a/../b/validate", "/v1/clusters/b/../a/validate", "/v1/clusters/./a/validate",
		"//v1/clusters/a/validate", "/v1//clusters/a/validate", "/v1/clusters/a//validate", "/x/../v1/clusters/a/validate",
		"/v1/clusters/a%2fvalidate", "/v1/clusters/%61/validate", "/v1/clusters/a%2f..%2fb/validate", "/v1/clusters/a\\validate",
		"/v1/clusters/a;x/validate", "/v1/clusters/A/validate", "/v1/clusters/a/validate#", "/v1/clusters/a/validate;x",
		"https://dispatcher/v1/clusters/a/validate", "*",
	} {
		t.Run("A6 "+target, func(t *testing.T) {
			w.isRefused(message{target: target, body: review("1")}, http.StatusNotFound)
		})
	}
	t.Run("A6 dots as a cluster", func(t *testing.T) {
		w.isRefused(message{target: "/v1/clusters/../validate", body: review("1")}, http.StatusForbidden)
	})
	w.judge.none(t)
	t.Run("phases", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(message{target: "/v1/clusters/a/validate", body: review("1")}), "1")
		c.isAllowed(c.ask(message{target: "/v1/clusters/a/mutate?other=1&timeout=3s", body: review("2")}), "2")
		seen := w.judge.decisions()
		if seen[0].phase != registry.Validating || seen[1].phase != registry.Mutating {
			t.Errorf("phases %v, %v", seen[0].phase, seen[1].phase)
		}
	})
}

func TestMethod(t *testing.T) {
	w := newWorld(t, nil)
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "PRI", "X"} {
		t.Run("A7 "+method, func(t *testing.T) {
			got := w.isRefused(message{method: method, body: review("1")}, http.StatusMethodNotAllowed)
			if allow := got.header.Get("Allow"); allow != "POST" {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
	w.judge.none(t)
}

func TestContentType(t *testing.T) {
	w := newWorld(t, nil)
	ask := func(contentType string) message {
		m := message{body: review("1")}
		m.headers = fmt.Sprintf("%sContent-Length: %d\r\n", contentType, len(m.body))
		return m
	}
	for _, ct := range []string{"", "application/yaml", "text/plain", "application/json; charset=utf-16", "application/json; charset=latin1",
		"application/json;;;=", "application/jsonx", "multipart/form-data; boundary=x", "application/json, application/yaml"} {
		t.Run("A8 "+ct, func(t *testing.T) {
			header := "Content-Type: " + ct + "\r\n"
			if ct == "" {
				header = ""
			}
			w.isRefused(ask(header), http.StatusUnsupportedMediaType)
		})
	}
	t.Run("A9 protobuf waits for its issue", func(t *testing.T) {
		w.isRefused(ask("Content-Type: application/vnd.kubernetes.protobuf\r\n"), http.StatusUnsupportedMediaType)
	})
	w.judge.none(t)
	for _, ct := range []string{"application/json; charset=UTF-8", `application/json;charset="utf-8"`, "Application/JSON", "application/json; x=y"} {
		t.Run("A8 accepted "+ct, func(t *testing.T) {
			c := w.dial()
			c.isAllowed(c.ask(ask("Content-Type: "+ct+"\r\n")), "1")
		})
	}
}

func compressed(t *testing.T, encoding, content string) string {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&buf)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestContentEncoding(t *testing.T) {
	w := newWorld(t, nil)
	for _, encoding := range []string{"gzip", "zstd", "GZIP"} {
		t.Run("A10 "+encoding, func(t *testing.T) {
			c := w.dial()
			m := message{extra: "Content-Encoding: " + encoding + "\r\n", body: compressed(t, encoding, review("1"))}
			c.isAllowed(c.ask(m), "1")
			if got := w.judge.last(t).body; got != review("1") {
				t.Errorf("decided %q", got)
			}
			c.isAllowed(c.ask(good("2")), "2")
		})
		t.Run("A21 bomb "+encoding, func(t *testing.T) {
			bomb := compressed(t, encoding, strings.Repeat(" ", 32<<20))
			w.isRefused(message{extra: "Content-Encoding: " + encoding + "\r\n", body: bomb}, http.StatusRequestEntityTooLarge)
		})
		t.Run("A10 not "+encoding, func(t *testing.T) {
			w.isRefused(message{extra: "Content-Encoding: " + encoding + "\r\n", body: review("1")}, http.StatusBadRequest)
		})
	}
	before := len(w.judge.decisions())
	for _, encoding := range []string{"br", "deflate", "identity", "gzip, gzip", "gzip\r\nContent-Encoding: gzip", ""} {
		t.Run("A10 other "+encoding, func(t *testing.T) {
			w.isRefused(message{extra: "Content-Encoding: " + encoding + "\r\n", body: review("1")}, http.StatusUnsupportedMediaType)
		})
	}
	if after := len(w.judge.decisions()); after != before {
		t.Errorf("%d requests came through", after-before)
	}
}

func TestFraming(t *testing.T) {
	w := newWorld(t, nil)
	smuggled := good("smuggled").String()
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(review("1")), review("1"))
	const json = "Content-Type: application/json\r\n"
	for _, tt := range []struct {
		name, headers, body string
		status              int
	}{
		{"A11 chunked", "Transfer-Encoding: chunked\r\n", chunked, 411},
		{"A11 chunked, nothing of it sent", "Transfer-Encoding: chunked\r\n", "", 411},
		{"A11 chunked and Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", 411},
		{"A11 Content-Length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 411},
		{"A11 identity", "Transfer-Encoding: identity\r\nContent-Length: 3\r\n", "abc", 411},
		{"A11 gzip", "Transfer-Encoding: gzip, chunked\r\n", chunked, 411},
		{"A11 twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked, 411},
		{"A11 in other case", "tRANSFER-eNCODING: ChUnKeD\r\n", chunked, 411},
		{"A11 empty", "Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc", 411},
		{"A11 folded", "Transfer-Encoding:\r\n chunked\r\n", chunked, 411},
		{"A11 expecting to continue", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "", 411},
		{"A11 space before the colon", "Transfer-Encoding : chunked\r\n", chunked, 400},
		{"A11 in a fold of another", "X: y\r\n\tTransfer-Encoding: chunked\r\n", chunked, 400},
		{"A12 two different Content-Length", "Content-Length: 3\r\nContent-Length: 4\r\n", "abcd", 400},
		{"A12 two equal Content-Length", "Content-Length: 3\r\nContent-Length: 3\r\n", "abc", 400},
		{"A12 list", "Content-Length: 3, 3\r\n", "abc", 400},
		{"A12 negative", "Content-Length: -3\r\n", "abc", 400},
		{"A12 signed", "Content-Length: +3\r\n", "abc", 400},
		{"A12 hex", "Content-Length: 0x3\r\n", "abc", 400},
		{"A12 overflow", "Content-Length: 18446744073709551619\r\n", "abc", 400},
		{"A12 empty", "Content-Length:\r\n", "abc", 400},
		{"A13 absent", "X: y\r\n", "", 400},
		{"A13 zero", "Content-Length: 0\r\n", "", 400},
		{"malformed header", "no colon\r\nContent-Length: 3\r\n", "abc", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.isRefused(text(message{headers: json + tt.headers, body: tt.body}.String()+smuggled), tt.status)
		})
	}
	t.Run("A11 HTTP/1.0", func(t *testing.T) {
		w.isRefused(text(message{proto: "HTTP/1.0", headers: json + "Transfer-Encoding: chunked\r\n", body: chunked}.String()+smuggled), 411)
	})
	w.judge.none(t)
}

func TestSize(t *testing.T) {
	w := newWorld(t, nil)
	const limit = 8 << 20
	// A name is as good a place for bytes as any.
	sized := func(n int) string {
		r := review("1")
		return strings.Replace(r, `"metadata":{"name":"web"`, `"metadata":{"name":"`+strings.Repeat("x", n-len(r)+len("web"))+`"`, 1)
	}
	announced := func(n, extra string) message {
		return message{headers: "Content-Type: application/json\r\nContent-Length: " + n + "\r\n" + extra}
	}
	t.Run("A14 8 MiB and one byte, before it is read", func(t *testing.T) {
		w.isRefused(announced("8388609", ""), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 the largest number", func(t *testing.T) {
		w.isRefused(announced("9223372036854775807", ""), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 without 100 Continue", func(t *testing.T) {
		w.isRefused(announced("8388609", "Expect: 100-continue\r\n"), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 while it is sent", func(t *testing.T) {
		w.isRefused(message{body: sized(limit + 1)}, http.StatusRequestEntityTooLarge)
	})
	w.judge.none(t)
	t.Run("A14 exactly 8 MiB", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(message{body: sized(limit)}), "1")
		c.isAllowed(c.ask(good("2")), "2")
	})
	t.Run("A14 over the cluster's own limit", func(t *testing.T) {
		c := w.dialAs(pki.Subject{CommonName: "small"})
		const target = "/v1/clusters/small/validate"
		c.isAllowed(c.ask(message{target: target, body: sized(2000)}), "1")
		c.refusedWith(c.ask(message{target: target, body: sized(2001)}), http.StatusRequestEntityTooLarge)
	})
	t.Run("A16 URI over 8 KiB", func(t *testing.T) {
		uri := "/v1/clusters/a/validate?timeout=10s&x="
		c := w.dial()
		c.isAllowed(c.ask(message{target: uri + strings.Repeat("x", 8192-len(uri)), body: review("1")}), "1")
		c.refusedWith(c.ask(message{target: uri + strings.Repeat("x", 8193-len(uri)), body: review("1")}), http.StatusRequestURITooLong)
	})
	t.Run("A16 headers over 32 KiB", func(t *testing.T) {
		fill := func(n int) string { return "X: " + strings.Repeat("x", n) + "\r\n" }
		c := w.dial()
		c.isAllowed(c.ask(message{extra: fill(32000), body: review("1")}), "1")
		c.refusedWith(c.ask(message{extra: fill(33000), body: review("1")}), http.StatusRequestHeaderFieldsTooLarge)
		w.isRefused(message{extra: fill(100000), body: review("1")}, http.StatusRequestHeaderFieldsTooLarge)
		w.isRefused(text("POST /"+strings.Repeat("x", 100000)), http.StatusRequestHeaderFieldsTooLarge)
	})
}

func TestExpect(t *testing.T) {
	w := newWorld(t, nil)
	head, body, _ := strings.Cut(message{extra: "Expect: 100-continue\r\n", body: review("1")}.String(), "\r\n\r\n")
	t.Run("A17 100-continue", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(good("0")), "0")
		c.send(text(head + "\r\n\r\n"))
		line, err := c.in.ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		if line, err = c.in.ReadString('\n'); err != nil || line != "\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		c.isAllowed(c.ask(text(body)), "1")
		c.isAllowed(c.ask(good("2")), "2")
	})
	for _, value := range []string{"200-ok", "100-continue, x", "x\r\nExpect: 100-continue", "100-continue\r\nExpect: x", ""} {
		t.Run("A17 "+value, func(t *testing.T) {
			w.isRefused(message{extra: "Expect: " + value + "\r\n", body: review("1")}, http.StatusExpectationFailed)
		})
	}
}

func TestPipelining(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("A19 two good requests", func(t *testing.T) {
		c := w.dial()
		c.send(text(good("1").String() + good("2").String()))
		c.isAllowed(c.answer(), "1")
		c.isAllowed(c.answer(), "2")
		c.isAllowed(c.ask(good("3")), "3")
	})
	t.Run("A19 nothing after a refusal", func(t *testing.T) {
		before := len(w.judge.decisions())
		w.isRefused(text(message{body: "{}"}.String()+good("2").String()), http.StatusBadRequest)
		if after := len(w.judge.decisions()); after != before {
			t.Error("the second request came through")
		}
	})
}

func TestTimeoutParameter(t *testing.T) {
	w := newWorld(t, nil)
	for _, query := range []string{"timeout=0s", "timeout=-1s", "timeout=abc", "timeout=", "timeout", "timeout=10", "timeout=1s&timeout=1s",
		"timeout=1s&timeout=x", "a=b&timeout=0s", "timeout=%31s"} {
		t.Run("A20 "+query, func(t *testing.T) {
			w.isRefused(message{target: "/v1/clusters/a/validate?" + query, body: review("1")}, http.StatusBadRequest)
		})
	}
	w.judge.none(t)
	for _, tt := range []struct {
		query string
		want  time.Duration
	}{
		{"", 9500 * time.Millisecond},
		{"?timeout=10s", 9500 * time.Millisecond},
		{"?timeout=31s", 28500 * time.Millisecond},
		{"?timeout=1h", 28500 * time.Millisecond},
		{"?timeout=5s", 3750 * time.Millisecond}, // cluster a has registered us with 10 s
	} {
		t.Run("A20 accepted "+tt.query, func(t *testing.T) {
			c := w.dial()
			c.isAllowed(c.ask(message{target: "/v1/clusters/a/validate" + tt.query, body: review("1")}), "1")
			if got := w.judge.last(t).budget; got > tt.want {
				t.Errorf("deadline in %v, want at most %v", got, tt.want)
			}
		})
	}
}

func TestDeadlineCountsFromTheHeaders(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dial()
	c.isAllowed(c.ask(good("0")), "0")
	head, body, _ := strings.Cut(good("1").String(), "\r\n\r\n")
	c.send(text(head + "\r\n\r\n" + body[:10]))
	// A round trip on another connection: by then the headers have been read.
	other := w.dial()
	other.isAllowed(other.ask(good("2")), "2")
	later := time.Now()
	c.isAllowed(c.ask(text(body[10:])), "1")
	if got := w.judge.last(t).deadline; got.After(later.Add(9500 * time.Millisecond)) {
		t.Errorf("the deadline counts from the body: %v after it began", got.Sub(later))
	}
}

func TestSlowCallers(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) {
		cfg.HeaderTimeout, cfg.BodyTimeout = 200*time.Millisecond, 100*time.Millisecond
	})
	steady := w.dial()
	steady.isAllowed(steady.ask(good("1")), "1")
	closed := map[string]*caller{
		"A4 no ClientHello":         w.dialPlain(),
		"A4 part of a ClientHello":  w.dialPlain(),
		"A4 part of the headers":    w.dial(),
		"A15 part of the body":      w.dial(),
		"A15 min(T, 5 s)":           w.dial(),
		"A17 nothing after 100":     w.dial(),
		"A15 shorter than declared": w.dial(),
	}
	half := good("1").String()
	half = half[:len(half)-10]
	closed["A4 part of a ClientHello"].send(text("\x16\x03\x01\x02\x00\x01"))
	closed["A4 part of the headers"].send(text(half[:40]))
	closed["A15 part of the body"].send(text(half))
	closed["A15 min(T, 5 s)"].send(text(strings.Replace(half, "10s", "1ms", 1)))
	closed["A17 nothing after 100"].send(text(message{headers: "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 10\r\n"}.String()))
	closed["A15 shorter than declared"].send(text(half))
	if err := closed["A15 shorter than declared"].Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for name, c := range closed {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(c.in)
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				t.Fatal("the connection is still open")
			}
			if bytes.Contains(got, []byte("200 OK")) {
				t.Errorf("answer %q", got)
			}
		})
	}
	steady.isAllowed(steady.ask(good("2")), "2")
	if n := len(w.judge.decisions()); n != 2 {
		t.Errorf("%d decisions, want 2", n)
	}
}

func TestFirstRequestMayComeLate(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.HeaderTimeout = 50 * time.Millisecond })
	early := w.dial() // opened ahead of need
	if err := early.Conn.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	silent := w.dialPlain()
	silent.isClosed() // by now more than the header timeout has passed
	again := w.dialPlain()
	again.isClosed()
	early.isAllowed(early.ask(good("1")), "1")
}
