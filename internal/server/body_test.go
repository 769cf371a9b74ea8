// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
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
