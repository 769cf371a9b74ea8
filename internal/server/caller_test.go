// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// message is a request written byte by byte. Zero values mean what
// kube-apiserver sends.
type message struct {
	method, target, proto string
	headers               string // lines in place of Content-Type and Content-Length
	extra                 string // lines besides them
	body                  string
}

func (m message) String() string {
	or := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	headers := or(m.headers, fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(m.body)))
	return or(m.method, "POST") + " " + or(m.target, "/v1/clusters/a/validate?timeout=10s") + " " + or(m.proto, "HTTP/1.1") +
		"\r\nHost: dispatcher\r\n" + headers + m.extra + "\r\n" + m.body
}

// review returns an AdmissionReview of version v1 with the uid.
func review(uid string) string { return reviewOf("v1", uid) }

func reviewOf(version, uid string) string {
	return `{"apiVersion":"admission.k8s.io/` + version + `","kind":"AdmissionReview","request":{"uid":"` + uid + `",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
		`"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"jane"},` +
		`"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}},"oldObject":null,"dryRun":false,"options":null}}`
}

// good is a request that is served.
func good(uid string) message { return message{body: review(uid)} }

// caller is one connection.
type caller struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// dial connects as cluster a.
func (w *world) dial() *caller { return w.dialAs(pki.Subject{CommonName: "a"}) }

func (w *world) dialAs(s pki.Subject) *caller {
	w.t.Helper()
	return w.dialTLS(w.clientTLS(s))
}

func (w *world) dialTLS(cfg *tls.Config) *caller {
	w.t.Helper()
	c, err := tls.Dial("tcp", w.addr, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return newCaller(w.t, c)
}

// dialPlain connects without TLS.
func (w *world) dialPlain() *caller {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	return newCaller(w.t, c)
}

func newCaller(t testing.TB, c net.Conn) *caller {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, Conn: c, in: bufio.NewReader(c)}
}

// send writes m. A server that has turned the caller away may refuse the rest.
func (c *caller) send(m fmt.Stringer) {
	c.t.Helper()
	_, _ = io.WriteString(c, m.String())
}

type text string

func (t text) String() string { return string(t) }

// answer is a response that has been read whole.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool
}

func (c *caller) answer() answer {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("answer cut short: %v", err)
	}
	return answer{resp.StatusCode, resp.Header, string(body), resp.Close}
}

// ask sends m and returns the answer.
func (c *caller) ask(m fmt.Stringer) answer {
	c.t.Helper()
	c.send(m)
	return c.answer()
}

// isClosed fails the test unless the server closes without another byte.
func (c *caller) isClosed() {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if len(rest) > 0 {
		c.t.Errorf("unexpected bytes: %q", rest)
	}
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		c.t.Error("the connection is still open")
	}
}

// isRefused asks m on a fresh connection of cluster a and fails the test unless
// it is refused as a transport row is.
func (w *world) isRefused(m fmt.Stringer, status int) answer {
	w.t.Helper()
	c := w.dial()
	got := c.ask(m)
	c.refusedWith(got, status)
	return got
}

func (c *caller) refusedWith(got answer, status int) {
	c.t.Helper()
	if got.status != status {
		c.t.Errorf("status %d, want %d: %s", got.status, status, got.body)
	}
	if !got.close {
		c.t.Error("no Connection: close")
	}
	if got.header.Get("Retry-After") != "" {
		c.t.Error("Retry-After makes kube-apiserver call again")
	}
	c.isClosed()
}

// isAllowed fails the test unless got allows uid.
func (c *caller) isAllowed(got answer, uid string) {
	c.t.Helper()
	want := `"response":{"uid":"` + uid + `","allowed":true}`
	if got.status != http.StatusOK || !strings.Contains(got.body, want) {
		c.t.Errorf("status %d, body %q, want 200 with %s", got.status, got.body, want)
	}
	if ct := got.header.Get("Content-Type"); ct != "application/json" {
		c.t.Errorf("Content-Type %q", ct)
	}
}
