// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

const hoarders = 40

// Who announces a body has no memory for it before it comes, and then as much as has
// come, at most four times over.
func TestMemoryFollowsWhatCame(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyTimeout = time.Minute })
	var callers []*caller
	for range hoarders {
		c := w.dial()
		c.send(announced(36<<20, ""))
		callers = append(callers, c)
	}
	other := w.dial()
	other.isAllowed(other.ask(good("1")), "1") // by now the heads have been read, or nearly
	if got := w.bodyBytes(); got > 0 {
		t.Errorf("A14 announcing costs %d bytes", got)
	}
	for _, sent := range []int{1, 20 << 10, 200 << 10} {
		for _, c := range callers {
			c.send(text(strings.Repeat(" ", sent)))
		}
		w.eventually("A14 the bytes have come", func() bool { return w.bodyBytes() >= int64(hoarders*sent) })
		other.isAllowed(other.ask(good("1")), "1")
		if got, most := w.bodyBytes(), int64(hoarders*(16<<10+4*(sent+20<<10+1))); got > most {
			t.Errorf("A14 %d bytes from each cost %d bytes, more than %d", sent, got, most)
		}
	}
	for _, c := range callers {
		_ = c.Close()
	}
	w.isFree()
}

// A stranger is refused for the head alone: the body is not waited for, and not read.
func TestStrangersCostNoBody(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) {
		cfg.TLS.ClientAuth, cfg.BodyTimeout = tls.VerifyClientCertIfGiven, time.Hour
	})
	stranger := &tls.Config{RootCAs: w.ca.Pool()}
	head := announced(36<<20, "")
	for name, ask := range map[string]func() (*caller, message){
		"without a certificate":  func() (*caller, message) { return w.dialTLS(stranger), head },
		"with one of nobody's":   func() (*caller, message) { return w.dialAs(pki.Subject{CommonName: "nobody"}), head },
		"with another cluster's": func() (*caller, message) { return w.dialAs(pki.Subject{DNSNames: []string{"b.example.com"}}), head },
		"with a token of nobody's": func() (*caller, message) {
			return w.dialTLS(stranger), announced(36<<20, "Authorization: Bearer x\r\n")
		},
		"who waits for 100 Continue":  func() (*caller, message) { return w.dialTLS(stranger), announced(36<<20, "Expect: 100-continue\r\n") },
		"with part of the body there": func() (*caller, message) { m := head; m.body = review("1"); return w.dialTLS(stranger), m },
	} {
		t.Run("A5 "+name, func(t *testing.T) {
			c, m := ask()
			c.refusedWith(c.ask(m), http.StatusForbidden)
			if got := w.bodyBytes(); got > 0 {
				t.Errorf("it costs %d bytes", got)
			}
		})
	}
	w.judge.none(t)
}

// A cluster that holds all it may is denied more, and no other cluster is.
func TestOneClusterFillsTheMemory(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyBytes, cfg.BodyTimeout = 4<<20, time.Minute })
	var callers []*caller
	for range hoarders {
		c := w.dial()
		c.send(text(announced(1<<20, "").String() + review("1")[:200] + strings.Repeat(" ", 60<<10)))
		callers = append(callers, c)
	}
	w.eventually("the memory is full", func() bool { return w.bodyBytes() > 1900<<10 })
	t.Run("A14 others are judged", func(t *testing.T) {
		b := w.dialAs(pki.Subject{DNSNames: []string{"b.example.com"}})
		for range 20 {
			b.isAllowed(b.ask(message{target: "/v1/clusters/b/validate", body: sized(200 << 10)}), "1")
		}
	})
	t.Run("A14 its own are denied", func(t *testing.T) {
		c := w.dial()
		c.denied(c.ask(message{body: sized(200 << 10)}), http.StatusTooManyRequests)
	})
	for _, c := range callers {
		_ = c.Close()
	}
	w.isFree()
	c := w.dial()
	c.isAllowed(c.ask(message{body: sized(200 << 10)}), "1")
}

// Bombs are decompressed within their cluster's share, and within what is there for
// all.
func TestDecompressionIsCounted(t *testing.T) {
	const limit = 40 << 20
	release := make(chan struct{})
	w := newWorld(t, func(cfg *server.Config) {
		cfg.BodyBytes, cfg.BodyLimit, cfg.Decompress = limit, 8<<20, true
	})
	w.judge.do = func(_ context.Context, req dispatcher.Request) codec.Response {
		if req.Cluster.Name == "a" {
			<-release
		}
		return codec.Response{Allowed: true}
	}
	bomb := message{extra: "Content-Encoding: gzip\r\n", body: compressed(t, "gzip", sized(2<<20))}
	var callers []*caller
	for range 20 {
		c := w.dial()
		c.send(bomb)
		callers = append(callers, c)
	}
	codes := make(chan string, len(callers))
	for _, c := range callers {
		go func() {
			switch got := c.answer(); {
			case strings.Contains(got.body, `"code":429`), got.status == http.StatusServiceUnavailable:
				codes <- "no memory"
			default:
				codes <- got.body
			}
		}()
	}
	if code := <-codes; code != "no memory" { // the others are held
		t.Errorf("A21 answered %.300s", code)
	}
	if got := w.bodyBytes(); got > limit/2 {
		t.Errorf("A21 one cluster holds %d bytes", got)
	}
	b := w.dialAs(pki.Subject{DNSNames: []string{"b.example.com"}})
	b.isAllowed(b.ask(message{target: "/v1/clusters/b/validate", body: sized(200 << 10)}), "1")
	close(release)
	for range len(callers) - 1 {
		<-codes
	}
	w.isFree()
}

// What a decompressor needs itself is counted.
func TestWindowIsCounted(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyBytes, cfg.Decompress = 8<<20, true })
	zipped := func(encoding string) message {
		return message{extra: "Content-Encoding: " + encoding + "\r\n", body: compressed(t, encoding, review("1"))}
	}
	t.Run("A21 a window that fits", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(zipped("gzip")), "1")
	})
	t.Run("A21 a window that does not", func(t *testing.T) {
		w.isRefused(zipped("zstd"), http.StatusServiceUnavailable)
	})
	w.isFree()
}

// However a body is cut into pieces, and whatever follows it, it is the same body.
func TestBodyInPieces(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dial()
	for _, size := range []int{500, 4 << 10, 16<<10 - 1, 16 << 10, 16<<10 + 1, 40 << 10, 70 << 10, 300 << 10} {
		one, next := message{body: sized(size)}.String(), good("2").String()
		both := one + next
		head := strings.Index(one, "\r\n\r\n") + 4
		for _, cut := range []int{head - 1, head, head + 1, head + 100, len(one) - 1, len(one), len(one) + 1, len(one) + 60, len(both) - 10, len(both)} {
			c.send(text(both[:cut]))
			if cut >= len(one) {
				c.isAllowed(c.answer(), "1")
			}
			c.send(text(both[cut:]))
			if cut < len(one) {
				c.isAllowed(c.answer(), "1")
			}
			c.isAllowed(c.answer(), "2")
			seen := w.judge.decisions()
			if got := seen[len(seen)-2].body; got != sized(size) {
				t.Fatalf("A19 size %d, cut at %d: got %d bytes", size, cut, len(got))
			}
		}
	}
	w.isFree()
}
