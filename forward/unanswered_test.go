// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// F45: a dispatcher that does not answer is a failed call in time, is called once, and comes
// to no answer that could be one of its own.
func TestFailures(t *testing.T) {
	t.Run("F45 refused", func(t *testing.T) {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
		w.start()
		w.server.Close()
		if got := w.call(path0, nil); got.status != http.StatusBadGateway || !strings.Contains(got.body, "connection refused") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("F45 hangs", func(t *testing.T) {
		w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.start()
		if got := w.call(path0+"?timeout=100ms", nil); got.status != http.StatusGatewayTimeout {
			t.Errorf("%+v", got)
		}
		if n := len(w.got()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("F45 of another authority", func(t *testing.T) {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
		other, err := pki.NewAuthority("other")
		if err != nil {
			t.Fatal(err)
		}
		w.write("ca.crt", other.PEM)
		w.start()
		if got := w.call(path0, nil); got.status != http.StatusBadGateway {
			t.Errorf("%+v", got)
		}
		if n := len(w.got()); n != 0 {
			t.Errorf("%d requests reached somebody else", n)
		}
	})
	t.Run("F45 resets after the request", func(t *testing.T) {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		w.start()
		for range 2 { // the second time on a connection that nobody has used
			if got := w.call(path0, []byte("{}")); got.status != http.StatusBadGateway {
				t.Errorf("%+v", got)
			}
		}
		if n := len(w.got()); n != 2 {
			t.Errorf("%d requests, want 2: one for each call", n)
		}
	})
	t.Run("F45 ends in its answer", func(t *testing.T) {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(rw, `{"allowed":true`)
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		})
		w.start()
		if got := w.call(path0, nil); got.err == nil {
			t.Errorf("half an answer is a whole one: %+v", got)
		}
	})
	t.Run("F45 closes what is idle", func(t *testing.T) {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "{}") })
		w.start()
		served := 0
		for i := range 50 {
			switch got := w.call(path0, []byte{byte(i)}); got.status {
			case http.StatusOK:
				served++
			case http.StatusBadGateway: // it was written before the end was seen: it may have been served
			default:
				t.Fatalf("call %d: %+v", i, got)
			}
			w.server.CloseClientConnections()
		}
		times := [50]int{}
		for _, r := range w.got() {
			times[r.body[0]]++
		}
		for i, n := range times {
			if n > 1 {
				t.Errorf("request %d was sent %d times", i, n)
			}
		}
		if served == 0 {
			t.Error("no call was served")
		}
	})
	t.Run("F45 the caller goes", func(t *testing.T) {
		begun, gone := make(chan struct{}), make(chan struct{})
		w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			close(gone)
		})
		w.start()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if got := w.send(ctx, http.MethodPost, path0+"?timeout=30s", strings.NewReader("")); got.err == nil {
			t.Errorf("%+v", got)
		}
		select {
		case <-gone:
		case <-time.After(20 * time.Second):
			t.Error("the dispatcher is still called")
		}
	})
	t.Run("F45 the caller's body ends early", func(t *testing.T) {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
		w.start()
		conn, err := tls.Dial("tcp", w.forwarder.Address().String(), &tls.Config{RootCAs: w.authority.Pool(), ServerName: "forwarder.admission.svc"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, "POST "+path0+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); len(rest) > 0 && strings.Contains(string(rest), " 200 ") {
			t.Errorf("%s, %v", rest, err)
		}
		if n := len(w.got()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
