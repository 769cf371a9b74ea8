// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
)

// F5: a webhook that reads nothing any more does not keep a call beyond its
// deadline. crypto/tls waits up to 5 s for room to say goodbye when it closes; a
// pipe has no room at all.
func TestClosingKeepsTheDeadline(t *testing.T) {
	for name, answer := range map[string]string{
		"F5 F7 without an answer":             "",
		"F5 after an answer that is the last": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = time.Second
				pool, end := newPipe(t, answer)
				req, resp := newRequest(), fasthttp.AcquireResponse()
				begin := time.Now()
				err := pool.DoTimeout(req, resp, timeout)
				if took := time.Since(begin); took > timeout {
					t.Errorf("the call took %v of %v", took, timeout)
				}
				if timedOut := isTimeout(err); timedOut != (answer == "") {
					t.Errorf("the error is %v", err)
				}
				end()
				<-time.After(time.Minute) // fasthttp's cleaner of idle connections ends
			})
		})
	}
}

// A call whose time is over does not dial: no time left would mean the dialer's
// own timeout.
func TestNoTimeToDial(t *testing.T) {
	pool := &fasthttp.HostClient{Addr: "policy:443", IsTLS: true, DialTimeout: func(string, time.Duration) (net.Conn, error) {
		t.Error("it dialled")
		return nil, errors.New("dialled")
	}}
	req := newRequest()
	req.SetTimeout(-time.Second)
	if _, err := new(exchange).RoundTrip(pool, req, fasthttp.AcquireResponse()); !isTimeout(err) {
		t.Errorf("the error is %v", err)
	}
}

func newRequest() *fasthttp.Request {
	req := fasthttp.AcquireRequest()
	req.SetRequestURI("https://policy/")
	req.Header.SetMethod(fasthttp.MethodPost)
	req.SetBodyRaw([]byte("{}"))
	return req
}

// newPipe is a pool with one connection, without any buffer, to a server that
// reads one request, writes answer, and neither reads nor closes until end.
func newPipe(t *testing.T, answer string) (pool *fasthttp.HostClient, end func()) {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Subject{DNSNames: []string{"policy"}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	go func() {
		c := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, answer)
		}
	}()
	secured := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy", RootCAs: authority.Pool()})
	pool = &fasthttp.HostClient{
		Addr: "policy:443", IsTLS: true, Transport: new(exchange),
		DialTimeout: func(string, time.Duration) (net.Conn, error) { return newConn(near, secured), nil },
	}
	return pool, func() { _ = far.Close() }
}
