// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A look-up that nobody waits for any more ends with net's own timeout.
		goleak.IgnoreAnyFunction("net.(*Resolver).tryOneName"),
		goleak.IgnoreAnyFunction("net.(*Resolver).lookupIPAddr.func1"),
		goleak.IgnoreAnyFunction("net.(*Resolver).lookupIPAddr.func2"))
}

const (
	serviceName = "policy.shop.svc"
	allowBody   = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":true}}`
	denyBody    = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":false}}`
	reviewBody  = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1"}}`
	patience    = 20 * time.Second // bounds every wait; nothing is expected to come near it
)

var loopback = transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// behaviour is what a scripted server does with one connection, after the TLS
// handshake.
type behaviour func(c net.Conn)

// world is a scripted TLS server with a way to call it.
type world struct {
	t         testing.TB
	authority *pki.Authority
	address   string
	client    *transport.Client
	spec      transport.TargetSpec
	review    []byte
	repeat    transport.Repeat
	cluster   string
	over      atomic.Bool // nobody needs the answer of a call any more

	connections atomic.Int64
	secured     atomic.Int64 // connections that finished their handshake
	requests    atomic.Int64
	ln          net.Listener // nil: it is dialled over pipes
	running     sync.WaitGroup
	mu          sync.Mutex
	open        map[net.Conn]bool
	// What follows is for pipes.
	dials map[string][]time.Time                          // by address
	gate  func(ctx context.Context, address string) error // of dials; nil: open
	wrap  func(near net.Conn) net.Conn                    // nil: as it is
}

func newAuthority(t testing.TB) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newWorld serves do on loopback with a certificate for serviceName.
func newWorld(t testing.TB, do behaviour) *world {
	return newWorldAs(t, pki.Subject{DNSNames: []string{serviceName}}, nil, do)
}

// newWorldAs serves do with a certificate for s; change may adapt the server.
func newWorldAs(t testing.TB, s pki.Subject, change func(*tls.Config), do behaviour) *world {
	t.Helper()
	w, cfg := newSpec(t, s)
	if change != nil {
		change(cfg)
	}
	w.listen(func(raw net.Conn) {
		c := tls.Server(raw, cfg)
		if c.Handshake() == nil {
			w.secured.Add(1)
			do(c)
		}
		_ = c.Close()
	})
	return w
}

// newPiped is newWorld over pipes instead of TCP, as a bubble needs it. Its one address
// is 10.0.0.1:443.
func newPiped(t testing.TB, cfg transport.ClientConfig, do behaviour) *world {
	t.Helper()
	w, tlsConfig := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
	tlsConfig.DynamicRecordSizingDisabled = true
	w.dialled(cfg, func(raw net.Conn) {
		c := tls.Server(raw, tlsConfig)
		if c.Handshake() == nil {
			w.secured.Add(1)
			do(c)
		}
		_ = c.Close()
	})
	return w
}

// dialled has the client connect to do over pipes, whatever the address.
func (w *world) dialled(cfg transport.ClientConfig, do func(raw net.Conn)) {
	cfg.Dial = func(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
		w.mu.Lock()
		w.dials[address.String()] = append(w.dials[address.String()], time.Now())
		w.mu.Unlock()
		if w.gate != nil {
			if err := w.gate(ctx, address.String()); err != nil {
				return nil, err
			}
		}
		near, far := net.Pipe()
		w.connections.Add(1)
		w.track(far)
		w.running.Go(func() { do(far) })
		if w.wrap != nil {
			near = w.wrap(near)
		}
		return near, nil
	}
	w.client = transport.NewClient(cfg)
	w.t.Cleanup(w.client.Close)
	w.spec.Endpoints = []transport.EndpointSpec{{Address: "10.0.0.1:443"}}
	w.t.Cleanup(w.stop)
}

// dialsOf returns when an address was dialled.
func (w *world) dialsOf(address string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dials[address])
}

// newWorldOver is newWorld for a server that says when its bytes leave.
func newWorldOver(t testing.TB, do func(c *coalesced, secured net.Conn)) *world {
	t.Helper()
	w, cfg := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
	w.listen(func(raw net.Conn) {
		c := &coalesced{Conn: raw}
		secured := tls.Server(c, cfg)
		if secured.Handshake() == nil {
			do(c, secured)
		}
		_ = secured.Close()
	})
	return w
}

// newSpec is a world whose server does not listen yet, and what it needs for TLS.
func newSpec(t testing.TB, s pki.Subject) (*world, *tls.Config) {
	t.Helper()
	w := &world{t: t, authority: newAuthority(t), review: []byte(reviewBody), cluster: "east", open: map[net.Conn]bool{}, dials: map[string][]time.Time{}}
	pair, err := w.authority.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	w.spec = transport.TargetSpec{
		URL:        "https://" + serviceName + "/check",
		ServerName: serviceName,
		CABundle:   w.authority.PEM,
	}
	w.client = transport.NewClient(transport.ClientConfig{Addresses: loopback, ResponseLimit: 64 << 10})
	t.Cleanup(func() { w.client.Close() })
	return w, &tls.Config{MinVersion: tls.VersionTLS10, Certificates: []tls.Certificate{certificate}}
}

// listen serves every connection with do, and cuts what is left at the end.
func (w *world) listen(do func(raw net.Conn)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.ln, w.address = ln, ln.Addr().String()
	w.spec.Endpoints = []transport.EndpointSpec{{Address: w.address}}
	w.running.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			w.connections.Add(1)
			w.track(raw)
			w.running.Go(func() { do(raw) })
		}
	})
	w.t.Cleanup(w.stop)
}

func (w *world) track(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c] = true
}

func (w *world) stop() {
	if w.ln != nil {
		_ = w.ln.Close()
	}
	w.mu.Lock()
	for c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// target resolves the spec's endpoints.
func (w *world) target() *transport.Target {
	w.t.Helper()
	target, err := transport.NewTarget(w.spec)
	if err != nil {
		w.t.Fatal(err)
	}
	r := transport.NewResolver(transport.ResolverConfig{Addresses: loopback})
	r.Refresh(context.Background(), target)
	w.t.Cleanup(target.Close)
	return target
}

// call calls target with a Body that is destroyed on its last release.
func (w *world) call(target *transport.Target, timeout time.Duration) (codec.Response, error) {
	w.t.Helper()
	var freed atomic.Int64
	body := codec.NewBody(bytes.Clone(w.review), func(b []byte) { clear(b); freed.Add(1) })
	call := newCall(target, body, timeout)
	call.Cluster, call.Repeat, call.Over = w.cluster, w.repeat, &w.over
	resp, err := w.ask(call)
	if freed.Load() != 0 {
		w.t.Error("the body was released more often than retained")
	}
	body.Release()
	if freed.Load() != 1 {
		w.t.Error("the call still holds the body")
	}
	return resp, err
}

// ask makes a call, whose Message it releases.
func (w *world) ask(call transport.Call) (codec.Response, error) {
	defer call.Message.Release()
	return w.client.Call(context.Background(), call)
}

// causeOf returns the cause of a CallError, or a text that is none.
func causeOf(err error) hook.Cause {
	var callErr *hook.CallError
	switch {
	case err == nil:
		return "no error"
	case errors.As(err, &callErr):
		return callErr.Cause
	}
	return hook.Cause(fmt.Sprintf("%T", err))
}

func (w *world) fails(target *transport.Target, timeout time.Duration, want hook.Cause) {
	w.t.Helper()
	resp, err := w.call(target, timeout)
	got := causeOf(err)
	if err == nil && !resp.Allowed {
		got = "a denial"
	}
	if got != want {
		w.t.Errorf("cause is %s (%v), want %s", got, err, want)
	}
}

func (w *world) allows(target *transport.Target) {
	w.t.Helper()
	if resp, err := w.call(target, patience); err != nil || !resp.Allowed {
		w.t.Errorf("the answer is %+v, %v", resp, err)
	}
}

// eachRequest reads requests and writes what answer says, until it says nothing
// or the connection ends.
func (w *world) eachRequest(answer func(r *http.Request) string) behaviour {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.requests.Add(1)
			text := answer(r)
			if text == "" {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// allowing answers every request with an allow.
func allowing(c net.Conn) {
	(&world{}).eachRequest(func(*http.Request) string { return ok(allowBody) })(c)
}

// answering is a world whose server answers each request with text.
func answering(t testing.TB, text string) *world {
	var w *world
	ready := make(chan struct{})
	w = newWorld(t, func(c net.Conn) {
		<-ready
		w.eachRequest(func(*http.Request) string { return text })(c)
	})
	close(ready)
	return w
}

// answeringPiped is answering over pipes.
func answeringPiped(t testing.TB, text string) *world {
	var w *world
	w = newPiped(t, transport.ClientConfig{ResponseLimit: 64 << 10}, func(c net.Conn) {
		w.eachRequest(func(*http.Request) string { return text })(c)
	})
	return w
}

// plain is an HTTP answer with a body.
func plain(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), header, body)
}

func ok(body string) string { return plain("200 OK", "", body) }

// chunked is an HTTP answer whose body is the chunks.
func chunked(chunks string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
}
