// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// The memory of a Body is handed back once, when the call is over, even if the
// caller has let go of it before.
func TestBodyIsHeldByTheCall(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		asked <- struct{}{}
		<-answer
		_, _ = io.WriteString(c, ok(allowBody))
	})
	var freed atomic.Int64
	body := codec.NewBody([]byte(reviewBody), func(b []byte) { clear(b); freed.Add(1) })
	target := w.target()
	done := make(chan error)
	go func() {
		_, err := w.ask(newCall(target, body, patience))
		done <- err
	}()
	<-asked
	body.Release()
	if freed.Load() != 0 {
		t.Error("freed while the call is under way")
	}
	close(answer)
	if err := <-done; err != nil || freed.Load() != 1 {
		t.Errorf("freed %d times, error %v", freed.Load(), err)
	}
}

// newCall is a call about body, which is the review with uid u-1.
func newCall(target *transport.Target, body *codec.Body, timeout time.Duration) transport.Call {
	return callIn(codec.Form{Version: codec.V1}, "u-1", target, body, timeout)
}

// callIn is a call about body, which is a review in JSON, in a form.
func callIn(form codec.Form, uid string, target *transport.Target, body *codec.Body, timeout time.Duration) transport.Call {
	review := &codec.Review{Body: body.Retain(), Version: codec.V1, UID: []byte(uid)}
	view := hook.NewView(hook.Source{Review: review})
	defer view.Release()
	codec.ReleaseReview(review)
	message, err := (&webhook.Hook{Target: target, Version: codec.V1}).Message(&hook.Question{View: view}, form)
	if err != nil {
		panic(err) // there is no limit
	}
	return transport.Call{
		Target:   target,
		Message:  message,
		Cluster:  "east",
		Deadline: time.Now().Add(timeout),
	}
}

// httpWorld is a world whose server is net/http's.
type httpWorld struct {
	*world
	closed chan struct{} // a value for each connection that ended
}

func newHTTP(t testing.TB, handler http.HandlerFunc) httpWorld {
	t.Helper()
	plain, cfg := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
	w := httpWorld{plain, make(chan struct{}, 64)}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = cfg
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			w.connections.Add(1)
		case http.StateClosed:
			w.closed <- struct{}{}
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.spec.Endpoints = []transport.EndpointSpec{{Address: server.Listener.Addr().String()}}
	return w
}

// Calls at once get each the answer to their own review, whatever its size.
func TestCallsAtOnce(t *testing.T) {
	w := newHTTP(t, func(out http.ResponseWriter, r *http.Request) {
		review, _ := io.ReadAll(r.Body)
		_, uid, _ := bytes.Cut(review, []byte(`"uid":"`))
		uid, _, _ = bytes.Cut(uid, []byte(`"`))
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, strings.Replace(allowBody, "u-1", string(uid), 1))
	})
	target := w.target()
	var calls sync.WaitGroup
	for caller := range 16 {
		calls.Go(func() {
			for i := range 20 {
				uid := fmt.Sprintf("u-%d-%d", caller, i)
				text := strings.Replace(reviewBody, "u-1", uid, 1) + strings.Repeat(" ", i*10_000)
				body := codec.NewBody([]byte(text), func(b []byte) { clear(b) })
				call := callIn(codec.Form{Version: codec.V1}, uid, target, body, patience)
				if resp, err := w.ask(call); err != nil || !resp.Allowed {
					t.Errorf("%s: %+v, %v", uid, resp, err)
				}
				body.Release()
			}
		})
	}
	calls.Wait()
	if n := w.connections.Load(); n > 16 {
		t.Errorf("%d connections for 16 callers", n)
	}
}

// The code of a denial says whose fault it is (docs/contract.md, "Causes").
func TestCausesHaveCodes(t *testing.T) {
	for code, causes := range map[int32][]hook.Cause{
		504: {hook.Timeout, hook.NoTimeLeft},
		503: {hook.Unreachable, hook.BreakerOpen, hook.TLS, hook.Pending},
		500: {hook.HTTPStatus, hook.BadAnswer, hook.BadPatch, hook.NotConvertible, hook.Panic},
		429: {hook.Shed},
		403: {hook.MatchError},
		400: {hook.DryRun},
	} {
		for _, cause := range causes {
			if got := cause.Code(); got != code {
				t.Errorf("%s has code %d, want %d", cause, got, code)
			}
		}
	}
}

// Whatever is repeated, no attempt begins when the call is over, and the call ends by
// its deadline.
func TestNoAttemptAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var deadline time.Time
		w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string {
				if !time.Now().Before(deadline) {
					t.Errorf("an attempt %v after the deadline", time.Since(deadline))
				}
				<-time.After(3 * time.Millisecond)
				return plain("500 Broken", "", "")
			})(c)
		})
		w.repeat = transport.Repeat{Safe: true, Failures: true}
		retries := int64(0)
		for timeout := 4 * time.Millisecond; timeout < 120*time.Millisecond; timeout += time.Millisecond {
			target := w.target()
			deadline = time.Now().Add(timeout)
			if _, err := w.call(target, timeout); causeOf(err) != hook.HTTPStatus && causeOf(err) != hook.Timeout {
				t.Errorf("a call of %v: %v", timeout, err)
			}
			if time.Now().After(deadline) {
				t.Errorf("a call of %v took %v more", timeout, time.Since(deadline))
			}
			retries += target.Stats().Retries
			<-time.After(time.Second)
		}
		if retries < 100 {
			t.Errorf("%d retries", retries)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		w.spec.Endpoints = append(w.spec.Endpoints, transport.EndpointSpec{Address: "10.0.0.2:443"})
		w.gate = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		target := w.target()
		w.fails(target, 950*time.Millisecond, hook.Timeout) // a little less than to connect may take
		if n := target.Stats().Attempts; n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// At most so many calls are under way to one Endpoint. A cluster that has its share of
// them waits 100 ms for one more, 256 of its calls at a time, or a quarter of the time
// that it has; the others find a slot.
func TestCallsToOneEndpointAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var w *world
		w = newPiped(t, transport.ClientConfig{Concurrency: 4}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { <-release; return ok(allowBody) })(c)
		})
		target := w.target()
		var calls sync.WaitGroup
		call := func(cluster string, timeout time.Duration) (hook.Cause, time.Duration) {
			body := codec.NewBody([]byte(reviewBody), nil)
			defer body.Release()
			c := newCall(target, body, timeout)
			c.Cluster = cluster
			begin := time.Now()
			_, err := w.ask(c)
			return causeOf(err), time.Since(begin)
		}
		start := func(cluster string, n int, want hook.Cause, within time.Duration) {
			for range n {
				calls.Go(func() {
					if got, took := call(cluster, patience); got != want || took != within {
						t.Errorf("%s: %s after %v, want %s after %v", cluster, got, took, want, within)
					}
				})
			}
			synctest.Wait()
		}
		const holds = 10 * time.Second
		start("east", 3, "no error", holds)
		start("east", 256, hook.Shed, 100*time.Millisecond)
		if got, took := call("east", patience); got != hook.Shed || took != 0 {
			t.Errorf("the 257th that waits: %s after %v", got, took)
		}
		start("west", 1, "no error", holds)
		<-time.After(time.Second)
		if got, took := call("east", 200*time.Millisecond); got != hook.Shed || took != 50*time.Millisecond {
			t.Errorf("a call of 200 ms: %s after %v", got, took)
		}
		<-time.After(holds - 1050*time.Millisecond)
		if n := w.requests.Load(); n != 4 {
			t.Errorf("the webhook has seen %d calls at a time", n)
		}
		close(release)
		calls.Wait()
		if got, _ := call("east", patience); got != "no error" {
			t.Errorf("a call later: %s", got)
		}
	})
}

// A call that waits for a slot is made as soon as another one ends.
func TestWaitingCallIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newPiped(t, transport.ClientConfig{Concurrency: 1}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { <-time.After(30 * time.Millisecond); return ok(allowBody) })(c)
		})
		target := w.target()
		begin := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() { w.allows(target) })
		}
		calls.Wait()
		if took := time.Since(begin); took != 90*time.Millisecond {
			t.Errorf("three calls, one at a time, took %v", took)
		}
	})
}

// What Attempted, Refused and Disagreed are told.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observed
		var w *world
		var script []string
		w = newPiped(t, transport.ClientConfig{Observer: &o}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string {
				w.mu.Lock()
				do := "allow"
				if len(script) > 0 {
					do, script = script[0], script[1:]
				}
				w.mu.Unlock()
				switch do {
				case "reset":
					return ""
				case "deny late":
					<-time.After(100 * time.Millisecond)
					return plain("200 OK", "Connection: close\r\n", denyBody)
				}
				<-time.After(10 * time.Millisecond)
				return plain("200 OK", "Connection: close\r\n", allowBody)
			})(c)
		})
		target := w.target()
		call := func(behaviours ...string) []string {
			w.mu.Lock()
			script = behaviours
			w.mu.Unlock()
			body := codec.NewBody([]byte(reviewBody), nil)
			defer body.Release()
			c := newCall(target, body, patience)
			c.Owner, c.Repeat.Safe = hook.ID{Name: "owner"}, true
			_, _ = w.ask(c)
			<-time.After(100 * time.Millisecond)
			return o.taken()
		}
		for range 40 {
			call()
		}
		for _, row := range []struct {
			name string
			got  []string
			want []string
		}{
			{"allowed", call("allow"), []string{"first 10ms owner"}},
			{"retried", call("reset", "allow"), []string{"first 0s owner Unreachable", "retry 10ms owner"}},
			{"hedged", call("deny late"), []string{"hedge 10ms owner", "first 100ms owner lost", "disagreed owner"}},
		} {
			if diff := cmp.Diff(row.want, row.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.name, diff)
			}
		}
		last := []string{"first 0s owner Unreachable", "refused owner"}
		for n := 0; ; n++ {
			got := call("reset", "reset", "reset", "reset")
			if diff := cmp.Diff(last, got); diff == "" {
				break
			} else if n == 20 {
				t.Fatalf("no attempt is refused (-want +got):\n%s", diff)
			}
		}
		if s := target.Stats(); s.BudgetRefused == 0 || s.Disagreements != 1 || s.Hedges != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// observed is an Observer that keeps what it is told, in words.
type observed struct {
	transport.Silent
	mu  sync.Mutex
	all []string
}

func (o *observed) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

func (o *observed) add(words ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
}

func (o *observed) Attempted(_ context.Context, a transport.Attempt) {
	words := []any{a.Kind, a.Elapsed.Round(time.Millisecond), a.Owner.Name}
	if a.Err != nil {
		words = append(words, causeOf(a.Err))
	}
	if a.Lost {
		words = append(words, "lost")
	}
	o.add(words...)
}

func (o *observed) Refused(_ context.Context, owner hook.ID) { o.add("refused", owner.Name) }

func (o *observed) Disagreed(_ context.Context, owner hook.ID) { o.add("disagreed", owner.Name) }

// After hundreds of calls at once 256 goroutines are kept for the next ones, and none
// when the Client is closed.
func TestKeptGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var w *world
		w = newPiped(t, transport.ClientConfig{Concurrency: 1024}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string { <-release; return plain("200 OK", "Connection: close\r\n", allowBody) })(c)
		})
		target := w.target()
		var calls sync.WaitGroup
		for range 300 {
			calls.Go(func() { w.allows(target) })
		}
		synctest.Wait()
		if n := attempting(); n != 300 {
			t.Errorf("%d goroutines make 300 attempts", n)
		}
		close(release)
		calls.Wait()
		synctest.Wait()
		if n := attempting(); n != 256 {
			t.Errorf("%d goroutines are kept", n)
		}
		w.allows(target)
		if w.client.Close(); attempting() != 0 {
			t.Errorf("%d goroutines are kept at the end", attempting())
		}
	})
}

// attempting counts the goroutines that make attempts, or wait for one to make. What
// else the process does meanwhile does not count.
func attempting() int {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // into memory
	return strings.Count(stacks.String(), "/internal/worker.(*Pool[...]).work(")
}

// F14: net/http says close_notify and FIN when it closes what is idle.
func TestIdleConnectionsClosedByNetHTTP(t *testing.T) {
	servers := make(chan *http.Server, 1)
	w := newHTTP(t, func(out http.ResponseWriter, r *http.Request) {
		servers <- r.Context().Value(http.ServerContextKey).(*http.Server)
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, allowBody)
	})
	target := w.target()
	for range 50 {
		w.allows(target)
		server := <-servers
		server.SetKeepAlivesEnabled(false) // closes what is idle
		<-w.closed
		server.SetKeepAlivesEnabled(true)
	}
}

// BenchmarkCall is one call on a warm connection. Its server allocates nothing
// but what crypto/tls does, so the figures are the Client's.
func BenchmarkCall(b *testing.B) {
	answer := []byte(ok(allowBody))
	w := newWorldAs(b, pki.Subject{DNSNames: []string{serviceName}}, func(*tls.Config) {}, func(c net.Conn) {
		buf := make([]byte, 32<<10)
		for filled := 0; ; {
			n, err := c.Read(buf[filled:])
			if err != nil {
				return
			}
			if filled += n; bytes.HasSuffix(buf[:filled], []byte(reviewBody)) {
				filled = 0
				_, _ = c.Write(answer)
			}
		}
	})
	call := newCall(w.target(), codec.NewBody([]byte(reviewBody), nil), patience)
	b.ReportAllocs()
	for b.Loop() {
		call.Deadline = time.Now().Add(patience)
		if _, err := w.client.Call(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
}
