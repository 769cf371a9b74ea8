// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

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

// denied fails the test unless got denies uid 1 with the code, and is the last
// answer on its connection.
func (c *caller) denied(got answer, code int) {
	c.t.Helper()
	want := fmt.Sprintf(`"code":%d`, code)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"uid":"1","allowed":false`) || !strings.Contains(got.body, want) {
		c.t.Errorf("status %d, %.300s, want a denial with %s", got.status, got.body, want)
	}
	if !got.close {
		c.t.Error("no Connection: close")
	}
	c.isClosed()
}

func TestContentEncoding(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.Decompress, cfg.BodyLimit = true, 1<<20 })
	for _, encoding := range []string{"gzip", "zstd", "GZIP"} {
		header := "Content-Encoding: " + encoding + "\r\n"
		t.Run("A10 "+encoding, func(t *testing.T) {
			c := w.dial()
			c.isAllowed(c.ask(message{extra: header, body: compressed(t, encoding, review("1"))}), "1")
			if got := w.judge.last(t).body; got != review("1") {
				t.Errorf("decided %q", got)
			}
			c.isAllowed(c.ask(good("2")), "2")
		})
		t.Run("A21 bomb "+encoding, func(t *testing.T) {
			bomb := compressed(t, encoding, strings.Repeat(" ", 32<<20))
			w.isRefused(message{extra: header, body: bomb}, http.StatusRequestEntityTooLarge)
		})
		t.Run("A21 bomb with a uid "+encoding, func(t *testing.T) {
			bomb := compressed(t, encoding, review("1")+strings.Repeat(" ", 32<<20))
			c := w.dial()
			c.denied(c.ask(message{extra: header, body: bomb}), http.StatusRequestEntityTooLarge)
		})
		t.Run("A10 not "+encoding, func(t *testing.T) {
			w.isRefused(message{extra: header, body: review("1")}, http.StatusBadRequest)
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
	w.isFree()
}

func TestNoContentEncodingByDefault(t *testing.T) {
	w := newWorld(t, nil)
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run("A10 "+encoding, func(t *testing.T) {
			w.isRefused(message{extra: "Content-Encoding: " + encoding + "\r\n", body: compressed(t, encoding, review("1"))}, http.StatusUnsupportedMediaType)
		})
	}
	w.judge.none(t)
}

// A name is as good a place for bytes as any.
func sized(n int) string {
	r := review("1")
	return strings.Replace(r, `"metadata":{"name":"web"`, `"metadata":{"name":"`+strings.Repeat("x", n-len(r)+len("web"))+`"`, 1)
}

// announced is a request of which at first only the head is sent.
func announced(length int, extra string) message {
	return message{headers: fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n%s", length, extra)}
}

// bodyBytes returns how much memory all clusters' bodies take.
func (w *world) bodyBytes() (sum int64) {
	for _, held := range w.server.BodyBytes() {
		sum += held
	}
	return sum
}

// isFree waits until no memory is taken for bodies.
func (w *world) isFree() {
	w.t.Helper()
	w.eventually("all memory is given back", func() bool { return w.bodyBytes() == 0 })
}

func TestSize(t *testing.T) {
	const limit = 1 << 20
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyLimit, cfg.BodyTimeout = limit, 200*time.Millisecond })
	steady := newWorld(t, nil)
	t.Run("A14 one byte above, nothing of it sent", func(t *testing.T) {
		w.isRefused(announced(limit+1, ""), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 the largest number", func(t *testing.T) {
		w.isRefused(announced(math.MaxInt, ""), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 without 100 Continue", func(t *testing.T) {
		w.isRefused(announced(limit+1, "Expect: 100-continue\r\n"), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 no uid in front", func(t *testing.T) {
		w.isRefused(message{body: strings.Repeat(" ", 5000) + sized(limit)}, http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 above, the uid and no more of it sent", func(t *testing.T) {
		c := w.dial()
		c.denied(c.ask(text(announced(limit+1, "").String()+review("1")[:100])), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 while it is sent", func(t *testing.T) {
		c := w.dial()
		c.denied(c.ask(message{body: sized(limit + 1)}), http.StatusRequestEntityTooLarge)
	})
	w.judge.none(t)
	if n := len(w.judge.declined); n != 2 {
		t.Errorf("%d were declined", n)
	}
	t.Run("A14 at the limit", func(t *testing.T) {
		c := steady.dial()
		c.isAllowed(c.ask(message{body: sized(36 << 20)}), "1")
		if got := steady.judge.last(t).body; len(got) != 36<<20 || got != sized(36<<20) {
			t.Errorf("decided %d bytes", len(got))
		}
		c.isAllowed(c.ask(good("2")), "2")
		c.denied(c.ask(message{body: sized(36<<20 + 1)}), http.StatusRequestEntityTooLarge)
	})
	t.Run("A14 as kube-apiserver's client sends it", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: steady.clientTLS(pki.Subject{CommonName: "a"})}}
		defer client.CloseIdleConnections()
		for range 5 {
			resp, err := client.Post("https://"+steady.addr+"/v1/clusters/a/validate?timeout=10s", "application/json", strings.NewReader(sized(48<<20)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"code":413`) {
				t.Errorf("status %d, %.300s, %v", resp.StatusCode, body, err)
			}
		}
	})
	t.Run("A14 over the cluster's own limit", func(t *testing.T) {
		c := steady.dialAs(pki.Subject{CommonName: "small"})
		const target = "/v1/clusters/small/validate"
		c.isAllowed(c.ask(message{target: target, body: sized(2000)}), "1")
		c.denied(c.ask(message{target: target, body: sized(2001)}), http.StatusRequestEntityTooLarge)
	})
	w.isFree()
	steady.isFree()
}

// A body of no bytes is not waited for, and one of as many as there may be is welcome.
func TestAnnouncedBody(t *testing.T) {
	const limit = 64 << 10
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyLimit = limit })
	w.isRefused(announced(0, ""), http.StatusBadRequest)
	for length, welcome := range map[int]string{limit: "HTTP/1.1 100 Continue", limit + 1: "HTTP/1.1 413 Request Entity Too Large"} {
		c := w.dial()
		c.send(announced(length, "Expect: 100-continue\r\n"))
		line, err := c.in.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != welcome {
			t.Errorf("%d bytes: %q, %v", length, line, err)
		}
	}
}

// The smallest body needs memory, too.
func TestNoMemoryForTheSmallest(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.BodyBytes = 31 << 10 }) // half of it holds no buffer
	c := w.dial()
	c.denied(c.ask(good("1")), http.StatusTooManyRequests)
	enough := newWorld(t, func(cfg *server.Config) { cfg.BodyBytes = 32 << 10 })
	c = enough.dial()
	c.isAllowed(c.ask(good("1")), "1")
}

func TestHeadSize(t *testing.T) {
	w := newWorld(t, nil)
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
