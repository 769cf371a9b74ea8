// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// F6: whoever cannot prove who it is sees no byte of a review.
func TestCertificates(t *testing.T) {
	never := func(c net.Conn) {
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			t.Error("a byte was sent")
		}
	}
	named := pki.Subject{DNSNames: []string{serviceName}}
	for _, row := range []struct {
		name    string
		subject pki.Subject
		server  func(*tls.Config)
		spec    func(*transport.TargetSpec)
	}{
		{name: "F6 expired", subject: pki.Subject{DNSNames: []string{serviceName}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}},
		{name: "F6 another name", subject: pki.Subject{DNSNames: []string{"other.shop.svc"}}},
		{name: "F6 another authority", subject: named, spec: func(s *transport.TargetSpec) { s.CABundle = newAuthority(t).PEM }},
		{name: "F6 the system's roots", subject: named, spec: func(s *transport.TargetSpec) { s.CABundle = nil }},
		{name: "TLS 1.1", subject: named, server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldAs(t, row.subject, row.server, never)
			if row.spec != nil {
				row.spec(&w.spec)
			}
			w.fails(w.target(), patience, hook.TLS)
		})
	}
}

func TestConnectionFailures(t *testing.T) {
	t.Run("F1 connection refused", func(t *testing.T) {
		w := newWorld(t, nil)
		target := w.target()
		w.stop()
		w.fails(target, patience, hook.Unreachable)
	})
	t.Run("F5 accepts and is silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
			begin := time.Now()
			w.fails(w.target(), 3*time.Second, hook.Timeout)
			if took := time.Since(begin); took != 3*time.Second {
				t.Errorf("the call took %v", took)
			}
		})
	})
	t.Run("F5 reads nothing of a review", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, func(net.Conn) { <-time.After(time.Minute) })
			begin := time.Now()
			w.fails(w.target(), 3*time.Second, hook.Timeout)
			if took := time.Since(begin); took != 3*time.Second {
				t.Errorf("the call took %v", took)
			}
		})
	})
	t.Run("F1 the handshake is cut off", func(t *testing.T) {
		w, _ := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
		w.listen(func(raw net.Conn) { _ = raw.Close() })
		w.fails(w.target(), patience, hook.TLS)
	})
	t.Run("the webhook wants a client certificate", func(t *testing.T) {
		w := newWorldAs(t, pki.Subject{DNSNames: []string{serviceName}},
			func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, nil)
		w.fails(w.target(), patience, hook.TLS)
	})
	t.Run("no time left", func(t *testing.T) {
		w := answering(t, ok(allowBody))
		w.fails(w.target(), -time.Second, hook.NoTimeLeft)
		if w.connections.Load() != 0 {
			t.Error("it was called")
		}
	})
	t.Run("F13 reset after the request: exactly one attempt", func(t *testing.T) {
		w := answering(t, "")
		w.fails(w.target(), patience, hook.Unreachable)
		if w.requests.Load() != 1 {
			t.Errorf("%d attempts", w.requests.Load())
		}
	})
}

// F3, F5: TCP and TLS together take at most the connect timeout, 1 s by default, and
// at most what is left of the call.
func TestConnectTimeout(t *testing.T) {
	for _, row := range []struct {
		name              string
		connect, deadline time.Duration
		want              time.Duration
	}{
		{"by default", 0, 10 * time.Second, time.Second},
		{"as configured", 3 * time.Second, 10 * time.Second, 3 * time.Second},
		{"the call's deadline", 0, 400 * time.Millisecond, 400 * time.Millisecond},
	} {
		for stage, gate := range map[string]func(context.Context, string) error{
			"F3 a black hole":           func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
			"F5 no handshake":           nil,
			"F3 F5 one, then the other": func(context.Context, string) error { <-time.After(200 * time.Millisecond); return nil },
		} {
			t.Run(row.name+", "+stage, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, _ := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
					w.gate = gate
					var ended int64
					w.dialled(transport.ClientConfig{ConnectTimeout: row.connect}, func(raw net.Conn) { _, _ = io.Copy(io.Discard, raw); ended++ })
					begin := time.Now()
					w.fails(w.target(), row.deadline, hook.Timeout)
					if took := time.Since(begin); took != row.want {
						t.Errorf("the call took %v, want %v", took, row.want)
					}
					if synctest.Wait(); ended != w.connections.Load() {
						t.Error("a connection is left")
					}
				})
			})
		}
	}
}

// A connection is kept for 8 to 10 minutes, each for a time of its own, so that calls
// reach servers that are new behind an address, and not all at a time.
func TestConnectionsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 20 * time.Second // less than a connection may be idle
		w := newPiped(t, transport.ClientConfig{}, allowing)
		var targets []*transport.Target
		for i := range 12 {
			w.spec.Endpoints = []transport.EndpointSpec{{Address: fmt.Sprintf("10.0.0.%d:443", i)}}
			targets = append(targets, w.target())
		}
		for begin := time.Now(); time.Since(begin) <= 11*time.Minute; <-time.After(step) {
			for _, target := range targets {
				w.allows(target)
			}
		}
		ages := map[time.Duration]bool{}
		for i := range targets {
			dials := w.dialsOf(fmt.Sprintf("10.0.0.%d:443", i))
			if len(dials) != 2 {
				t.Fatalf("dialled %d times in 11 minutes, want 2", len(dials))
			}
			age := dials[1].Sub(dials[0])
			if age <= 8*time.Minute || age > 10*time.Minute+step {
				t.Errorf("a connection was kept for %v", age)
			}
			ages[age] = true
		}
		if len(ages) == 1 { // by chance in one of 10^8 runs
			t.Errorf("all connections were kept for %v", ages)
		}
	})
}

// A connection is closed when it has been idle for a minute or two.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		target := w.target()
		w.allows(target)
		<-time.After(59 * time.Second)
		w.allows(target)
		if n := w.connections.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		<-time.After(2*time.Minute + time.Second)
		if n := target.Connections(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// A probe's connection is that of the first call.
func TestProbeWarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		target := w.target()
		if err := w.client.Probe(target, time.Second); err != nil {
			t.Fatal(err)
		}
		if n := target.Connections(); n != 1 {
			t.Errorf("%d connections are open after the probe", n)
		}
		w.allows(target)
		if n := w.connections.Load(); n != 1 {
			t.Errorf("%d connections for a probe and a call", n)
		}
	})
}

// A probe says of each Endpoint what is wrong. One that answers is enough.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		w.gate = func(ctx context.Context, address string) error {
			switch address {
			case "10.0.0.1:443":
				return errors.New("nobody is there")
			case "10.0.0.2:443":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		probe := func(timeout time.Duration, addresses ...string) error {
			w.spec.Endpoints = nil
			for _, address := range addresses {
				w.spec.Endpoints = append(w.spec.Endpoints, transport.EndpointSpec{Address: address})
			}
			return w.client.Probe(w.target(), timeout)
		}
		if err := probe(time.Second, "10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443"); err != nil {
			t.Errorf("one of three answers: %v", err)
		}
		begin := time.Now()
		err := probe(300*time.Millisecond, "10.0.0.1:443", "10.0.0.2:443")
		if took := time.Since(begin); took != 300*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		for _, text := range []string{serviceName, "nobody is there", "deadline exceeded"} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("the error is %v, want %q in it", err, text)
			}
		}
		unresolved, err := transport.NewTarget(w.spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.client.Probe(unresolved, time.Second); err == nil || !strings.Contains(err.Error(), "not been looked up") {
			t.Errorf("a Target without Endpoints: %v", err)
		}
	})
}

// Three connect timeouts open the Endpoint for all, unless the calls had less time
// than a connection may take.
func TestConnectTimeoutsAreCounted(t *testing.T) {
	for timeout, want := range map[time.Duration]breaker.State{2 * time.Second: breaker.Open, 900 * time.Millisecond: breaker.Open, 899 * time.Millisecond: breaker.Closed} {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, allowing)
			w.gate = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
			target := w.target()
			for range 3 {
				w.fails(target, timeout, hook.Timeout)
			}
			if got := target.Endpoints()[0].Health().State; got != want {
				t.Errorf("after three calls of %v it is %v", timeout, got)
			}
		})
	}
}

// A connection whose deadline this process notices late is not the webhook's fault:
// the process stood still.
func TestF33ConnectingWhileThisProcessStoodStill(t *testing.T) {
	for late, want := range map[time.Duration]breaker.State{240 * time.Millisecond: breaker.Open, 260 * time.Millisecond: breaker.Closed} {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, allowing)
			w.gate = func(ctx context.Context, _ string) error { <-ctx.Done(); <-time.After(late); return ctx.Err() }
			target := w.target()
			for range 3 {
				w.fails(target, 5*time.Second, hook.Timeout)
			}
			if got := target.Endpoints()[0].Health().State; got != want {
				t.Errorf("after connections that failed %v late it is %v", late, got)
			}
		})
	}
}

// Descriptors that this process lacks are not the webhook's fault.
func TestOutOfDescriptors(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE} {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, allowing)
			w.gate = func(context.Context, string) error {
				return &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", err)}
			}
			target := w.target()
			for range 12 {
				w.fails(target, time.Second, hook.Unreachable)
			}
			if got := target.Endpoints()[0].Health(); got.State != breaker.Closed || got.Failures > 0 || len(got.Circuits) > 0 {
				t.Errorf("%v: %+v", err, got)
			}
		})
	}
}

// Without a breaker every call is made, however many have failed.
func TestBreakerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { return plain("500 Broken", "", "") })(c)
		})
		w.spec.Breaker.Off = true
		target := w.target()
		for range 50 {
			w.fails(target, patience, hook.HTTPStatus)
		}
		if n := w.requests.Load(); n != 50 {
			t.Errorf("%d requests", n)
		}
	})
}

// How a breaker is set is the spec's.
func TestBreakerIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { return plain("500 Broken", "", "") })(c)
		})
		w.spec.Breaker = transport.BreakerSpec{FailureRatio: 1, MinRequests: 3, OpenTime: time.Hour}
		target := w.target()
		for range 2 {
			w.fails(target, patience, hook.HTTPStatus)
		}
		if got := target.Endpoints()[0].Health(); len(got.Circuits) > 0 {
			t.Fatalf("after two: %+v", got)
		}
		w.fails(target, patience, hook.HTTPStatus)
		got := target.Endpoints()[0].Health()
		if len(got.Circuits) != 1 || time.Until(got.Circuits[0].Until) < 40*time.Minute {
			t.Errorf("after three: %+v", got)
		}
	})
}

// When our client certificate expires is known.
func TestCertificateExpiry(t *testing.T) {
	w := newWorld(t, nil)
	if at := w.target().CertificateExpiry(); !at.IsZero() {
		t.Errorf("without a certificate: %v", at)
	}
	end := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	client, err := w.authority.Issue(pki.Subject{CommonName: "dispatcher", NotAfter: end})
	if err != nil {
		t.Fatal(err)
	}
	w.spec.ClientCertificate, w.spec.ClientKey = client.Certificate, client.Key
	if at := w.target().CertificateExpiry(); !at.Equal(end) {
		t.Errorf("%v, want %v", at, end)
	}
}

// F14: a connection that the webhook closed while it was idle is not a failed
// call.
func TestIdleConnectionsClosed(t *testing.T) {
	closed := make(chan struct{}, 1)
	var w *world
	ready := make(chan struct{})
	w = newWorld(t, func(c net.Conn) {
		<-ready
		served := false
		w.eachRequest(func(*http.Request) string {
			if served {
				return ""
			}
			served = true
			return ok(allowBody)
		})(endAfterAnswer{c, closed})
	})
	close(ready)
	target := w.target()
	for range 200 {
		w.allows(target)
		<-closed // the server's FIN is on its way before the next call begins
	}
	if w.requests.Load() != 200 {
		t.Errorf("%d requests for 200 calls", w.requests.Load())
	}
}

// F14: a connection that the webhook closes just as it is used again is replaced,
// however often that happens: it takes nothing from the budget.
func TestIdleConnectionsClosedAsReused(t *testing.T) {
	var w *world
	ready := make(chan struct{})
	w = newWorld(t, func(c net.Conn) {
		<-ready
		served := false
		w.eachRequest(func(*http.Request) string {
			if served {
				return "" // it closes instead
			}
			served = true
			return ok(allowBody)
		})(c)
	})
	close(ready)
	target := w.target()
	w.repeat = transport.Repeat{Safe: true, NoHedge: true} // on a busy machine some are slow
	const calls = 100
	for range calls {
		w.allows(target)
	}
	if n := w.connections.Load(); n != calls {
		t.Errorf("%d connections for %d calls", n, calls)
	}
	if s := target.Stats(); s.BudgetRefused > 0 || s.Retries != calls-1 {
		t.Errorf("%+v", s)
	}
	if h := target.Endpoints()[0].Health(); h.Failures > 0 || len(h.Circuits) > 0 {
		t.Errorf("it counts as failures: %+v", h)
	}
}

// F14: what replaces a connection that was closed as it was used again is a new one, not
// another that is as old.
func TestIdleConnectionsAllClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			served := false
			w.eachRequest(func(*http.Request) string {
				if served {
					return ""
				}
				served = true
				<-time.After(10 * time.Millisecond)
				return ok(allowBody)
			})(c)
		})
		w.repeat = transport.Repeat{Safe: true, NoHedge: true}
		target := w.target()
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() { w.allows(target) })
		}
		calls.Wait()
		w.allows(target)
		if s, n := target.Stats(), w.connections.Load(); s.Attempts != 4+2 || n != 4+1 {
			t.Errorf("%d connections, %+v", n, s)
		}
	})
}

// A connection outlives the deadline of the call that it was made for.
func TestIdleBeyondDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answeringPiped(t, ok(allowBody))
		target := w.target()
		if _, err := w.call(target, time.Second); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
		w.allows(target)
		if n := w.connections.Load(); n != 1 {
			t.Errorf("%d connections for 2 calls", n)
		}
	})
}

// A review is not sent over a connection that came about when the admission had been
// answered. The connection is kept, for the next call.
func TestConnectedAfterTheAnswer(t *testing.T) {
	var w *world
	connecting, answered := make(chan struct{}), make(chan struct{})
	w = newWorldAs(t, pki.Subject{DNSNames: []string{serviceName}}, func(cfg *tls.Config) {
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			close(connecting)
			<-answered
			return nil, nil
		}
	}, func(c net.Conn) { w.eachRequest(func(*http.Request) string { return ok(allowBody) })(c) })
	target := w.target()
	go func() {
		<-connecting
		w.over.Store(true)
		close(answered)
	}()
	w.fails(target, patience, hook.NoTimeLeft)
	w.over.Store(false)
	w.allows(target)
	if n := w.requests.Load(); n != 1 {
		t.Errorf("%d reviews were sent", n)
	}
	if n := w.connections.Load(); n != 1 {
		t.Errorf("%d connections for two calls", n)
	}
	if s := target.Stats(); s.Retries > 0 {
		t.Errorf("it was asked again: %+v", s)
	}
	if h := target.Endpoints()[0].Health(); h.Failures > 0 {
		t.Errorf("it counts as a failure: %+v", h)
	}
}

// A connection in use when its Target is closed ends with its call.
func TestCloseDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var target *transport.Target
		ended := false
		w := newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			target.Close()
			_, _ = io.WriteString(c, ok(allowBody))
			_, err := c.Read(make([]byte, 1))
			ended = errors.Is(err, io.EOF)
		})
		target = w.target()
		w.allows(target)
		if synctest.Wait(); !ended || target.Connections() != 0 {
			t.Errorf("%d connections are open", target.Connections())
		}
	})
}

// endAfterAnswer closes the connection right after the first answer.
type endAfterAnswer struct {
	net.Conn
	closed chan<- struct{}
}

func (c endAfterAnswer) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	_ = c.Conn.Close()
	c.closed <- struct{}{}
	return n, err
}

// What a webhook sees.
func TestRequest(t *testing.T) {
	seen := make(chan *http.Request, 1)
	var w *world
	ready := make(chan struct{})
	w = newWorldAs(t, pki.Subject{DNSNames: []string{serviceName}},
		func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert },
		func(c net.Conn) {
			<-ready
			state := c.(*tls.Conn).ConnectionState()
			w.eachRequest(func(r *http.Request) string {
				r.TLS = &state
				seen <- r
				return ok(allowBody)
			})(c)
		})
	client, err := w.authority.Issue(pki.Subject{CommonName: "dispatcher"})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	w.spec.URL = "https://" + serviceName + ":8443/a%20b/check"
	w.spec.ClientCertificate, w.spec.ClientKey = client.Certificate, client.Key
	w.spec.BearerToken = "secret"
	if _, err := w.call(w.target(), 2500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r := <-seen
	if r.TLS.PeerCertificates[0].Subject.CommonName != "dispatcher" || r.TLS.ServerName != serviceName {
		t.Errorf("TLS of %v for %q", r.TLS.PeerCertificates[0].Subject, r.TLS.ServerName)
	}
	want := map[string]string{
		"line": "POST /a%20b/check?timeout=3s HTTP/1.1", "Host": serviceName + ":8443",
		"Content-Type": "application/json", "Accept": "application/json, */*", "Accept-Encoding": "",
		"Authorization": "Bearer secret", "Admission-Cluster": "east", "User-Agent": "admission-dispatcher",
	}
	got := map[string]string{"line": strings.Join([]string{r.Method, r.RequestURI, r.Proto}, " "), "Host": r.Host}
	for name := range want {
		if name != "line" && name != "Host" {
			got[name] = r.Header.Get(name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A certificate is never taken unverified, whatever the spec leaves out.
func TestTrust(t *testing.T) {
	for name, spec := range map[string]transport.TargetSpec{
		"CA bundle without certificate": {URL: "https://a.example.com/", CABundle: []byte("nothing")},
		"client key that does not fit":  {URL: "https://a.example.com/", ClientCertificate: []byte("x"), ClientKey: []byte("y")},
		"E1 http":                       {URL: "http://a.example.com/"},
		"E1 query":                      {URL: "https://a.example.com/?a=b"},
		"E1 user":                       {URL: "https://a:b@a.example.com/"},
		"E1 fragment":                   {URL: "https://a.example.com/#a"},
		"E1 no host":                    {URL: "https:///a"},
		"no URL":                        {URL: "https://a.example.com/%zz"},
		"token of two lines":            {URL: "https://a.example.com/", BearerToken: "a\nb"},
		"endpoint with port 0":          {URL: "https://a.example.com/", Endpoints: []transport.EndpointSpec{{Address: "a:0"}}},
		"endpoint with port 65536":      {URL: "https://a.example.com/", Endpoints: []transport.EndpointSpec{{Address: "a:65536"}}},
		"endpoint without host":         {URL: "https://a.example.com/", Endpoints: []transport.EndpointSpec{{Address: ":1"}}},
		"endpoint with a CA of nothing": {URL: "https://a.example.com/", Endpoints: []transport.EndpointSpec{{Address: "a:1", CABundle: []byte("nothing")}}},
		"endpoint without port":         {URL: "https://a.example.com/", Endpoints: []transport.EndpointSpec{{Address: "a"}}},
	} {
		if _, err := transport.NewTarget(spec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The identity is everything that makes a Target that Target.
func TestIdentity(t *testing.T) {
	base := transport.TargetSpec{URL: "https://a.example.com/", ServerName: "a", CABundle: []byte("ca"), BearerToken: "t",
		Endpoints: []transport.EndpointSpec{{Address: "a:1", ServerName: "b"}}}
	seen := map[transport.Identity]string{base.Identity(): "base"}
	for name, change := range map[string]func(*transport.TargetSpec){
		"url":         func(s *transport.TargetSpec) { s.URL += "x" },
		"server name": func(s *transport.TargetSpec) { s.ServerName = "b" },
		"CA":          func(s *transport.TargetSpec) { s.CABundle = []byte("other") },
		"certificate": func(s *transport.TargetSpec) { s.ClientCertificate = []byte("c") },
		"key":         func(s *transport.TargetSpec) { s.ClientKey = []byte("c") },
		"token":       func(s *transport.TargetSpec) { s.BearerToken = "u" },
		"endpoint": func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "a:2", ServerName: "b"}}
		},
		"endpoints": func(s *transport.TargetSpec) { s.Endpoints = append(s.Endpoints[:1:1], s.Endpoints[0]) },
		"breaker":   func(s *transport.TargetSpec) { s.Breaker.MinRequests = 3 },
		"endpoint CA": func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "a:1", ServerName: "b", CABundle: []byte("ca")}}
		},
		"endpoint name": func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "a:1", ServerName: "c"}}
		},
		"shifted": func(s *transport.TargetSpec) { s.Endpoints = []transport.EndpointSpec{{Address: "a:1b"}} },
	} {
		spec := base
		change(&spec)
		if other, taken := seen[spec.Identity()]; taken {
			t.Errorf("%s has the identity of %s", name, other)
		}
		seen[spec.Identity()] = name
	}
	if same := base; same.Identity() != base.Identity() {
		t.Error("equal specs differ")
	}
}

// Probes find a connection while all slots are taken.
func TestProbesBesideCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 8
		var w *world
		w = newPiped(t, transport.ClientConfig{Concurrency: slots}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { <-time.After(time.Second); return ok(allowBody) })(c)
		})
		target := w.target()
		var calls sync.WaitGroup
		for i := range slots { // of as many clusters, so that each has one
			calls.Go(func() {
				body := codec.NewBody([]byte(reviewBody), nil)
				defer body.Release()
				call := newCall(target, body, patience)
				call.Cluster = fmt.Sprint(i)
				if _, err := w.ask(call); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := target.Outstanding(); n != slots {
			t.Errorf("%d calls are under way", n)
		}
		if err := w.client.Probe(target, 100*time.Millisecond); err != nil {
			t.Error(err)
		}
		calls.Wait()
		if n := target.Outstanding(); n != 0 {
			t.Errorf("%d calls are under way at the end", n)
		}
	})
}

// Close waits for a probe that is under way.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		w.gate = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		target := w.target()
		go func() { _ = w.client.Probe(target, 500*time.Millisecond) }()
		synctest.Wait()
		begin := time.Now()
		w.client.Close()
		if took := time.Since(begin); took != 500*time.Millisecond {
			t.Errorf("it waits %v", took)
		}
	})
}
