// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

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
	head, body, _ := strings.Cut(message{extra: "Expect: 100-continue\r\n", body: review("1")}.String(), "\r\n\r\n")
	c.send(text(head + "\r\n\r\n"))
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} { // which says that the headers have been read
		if line, err := c.in.ReadString('\n'); line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	later := time.Now()
	c.isAllowed(c.ask(text(body)), "1")
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
		"A17 nothing after 100":     w.dial(),
		"A15 shorter than declared": w.dial(),
	}
	half := good("1").String()
	half = half[:len(half)-10]
	closed["A4 part of a ClientHello"].send(text("\x16\x03\x01\x02\x00\x01"))
	closed["A4 part of the headers"].send(text(half[:40]))
	closed["A15 part of the body"].send(text(half))
	closed["A17 nothing after 100"].send(text(message{headers: "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 10\r\n"}.String()))
	closed["A15 shorter than declared"].send(text(half))
	if err := closed["A15 shorter than declared"].Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	// Whose uid has come is denied.
	denied := map[string]string{"A15 part of the body": `"code":408`, "A15 shorter than declared": `"code":400`}
	for name, c := range closed {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(c.in)
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				t.Fatal("the connection is still open")
			}
			code := denied[name]
			if bytes.Contains(got, []byte("200 OK")) != (code != "") || !bytes.Contains(got, []byte(code)) {
				t.Errorf("answer %q", got)
			}
		})
	}
	steady.isAllowed(steady.ask(good("2")), "2")
	if n := len(w.judge.decisions()); n != 2 {
		t.Errorf("%d decisions, want 2", n)
	}
}

// A body has no longer than its admission: min(T, 5 s).
func TestBodyHasUntilTheDeadline(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyTimeout = time.Hour })
	whole := message{target: "/v1/clusters/a/validate?timeout=150ms", body: review("1")}.String()
	t.Run("A15 min(T, 5 s)", func(t *testing.T) {
		c := w.dial()
		if got := c.ask(text(whole[:len(whole)-10])); !strings.Contains(got.body, `"code":408`) {
			t.Errorf("answer %q", got.body)
		}
	})
}

// A caller that does not read what it is answered is cut off: it would hold its
// answers, and a goroutine, as long as it likes.
func TestCallerThatDoesNotRead(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) {
		cfg.WriteTimeout, cfg.BodyTimeout, cfg.IdleTimeout = 100*time.Millisecond, time.Hour, time.Hour
	})
	w.judge.do = func(context.Context, dispatcher.Request) codec.Response {
		return codec.Response{Code: http.StatusForbidden, Message: strings.Repeat("x", 1<<20)}
	}
	c, begin := w.dial(), time.Now()
	for range 30 { // answers of more than all buffers between us
		c.send(good("1"))
	}
	w.eventually("it is cut off", func() bool { return w.server.Connections() == 0 })
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it is cut off after %v: as long as crypto/tls takes leave", took)
	}
}

func TestFirstRequestMayComeLate(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) {
		cfg.HeaderTimeout, cfg.TLS.ClientAuth = 50*time.Millisecond, tls.VerifyClientCertIfGiven
	})
	early := w.dial() // opened ahead of need
	if err := early.Conn.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	stranger := w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()})
	stranger.isClosed() // by now more than the header timeout has passed
	early.isAllowed(early.ask(good("1")), "1")
}
