// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"testing"
)

func TestFraming(t *testing.T) {
	w := newWorld(t, nil)
	smuggled := good("smuggled").String()
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(review("1")), review("1"))
	const json = "Content-Type: application/json\r\n"
	for _, tt := range []struct {
		name, headers, body string
		status              int
	}{
		{"A11 chunked", "Transfer-Encoding: chunked\r\n", chunked, 411},
		{"A11 chunked, nothing of it sent", "Transfer-Encoding: chunked\r\n", "", 411},
		{"A11 chunked and Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", 411},
		{"A11 Content-Length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 411},
		{"A11 identity", "Transfer-Encoding: identity\r\nContent-Length: 3\r\n", "abc", 411},
		{"A11 gzip", "Transfer-Encoding: gzip, chunked\r\n", chunked, 411},
		{"A11 twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked, 411},
		{"A11 in other case", "tRANSFER-eNCODING: ChUnKeD\r\n", chunked, 411},
		{"A11 empty", "Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc", 411},
		{"A11 folded", "Transfer-Encoding:\r\n chunked\r\n", chunked, 411},
		{"A11 expecting to continue", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "", 411},
		{"A11 space before the colon", "Transfer-Encoding : chunked\r\n", chunked, 400},
		{"A11 in a fold of another", "X: y\r\n\tTransfer-Encoding: chunked\r\n", chunked, 400},
		{"A12 two different Content-Length", "Content-Length: 3\r\nContent-Length: 4\r\n", "abcd", 400},
		{"A12 two equal Content-Length", "Content-Length: 3\r\nContent-Length: 3\r\n", "abc", 400},
		{"A12 list", "Content-Length: 3, 3\r\n", "abc", 400},
		{"A12 negative", "Content-Length: -3\r\n", "abc", 400},
		{"A12 signed", "Content-Length: +3\r\n", "abc", 400},
		{"A12 hex", "Content-Length: 0x3\r\n", "abc", 400},
		{"A12 overflow", "Content-Length: 18446744073709551619\r\n", "abc", 400},
		{"A12 empty", "Content-Length:\r\n", "abc", 400},
		{"A13 absent", "X: y\r\n", "", 400},
		{"A13 zero", "Content-Length: 0\r\n", "", 400},
		{"malformed header", "no colon\r\nContent-Length: 3\r\n", "abc", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.isRefused(text(message{headers: json + tt.headers, body: tt.body}.String()+smuggled), tt.status)
		})
	}
	t.Run("A11 HTTP/1.0", func(t *testing.T) {
		w.isRefused(text(message{proto: "HTTP/1.0", headers: json + "Transfer-Encoding: chunked\r\n", body: chunked}.String()+smuggled), 411)
	})
	w.judge.none(t)
}

func TestPipelining(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("A19 two good requests", func(t *testing.T) {
		c := w.dial()
		c.send(text(good("1").String() + good("2").String()))
		c.isAllowed(c.answer(), "1")
		c.isAllowed(c.answer(), "2")
		c.isAllowed(c.ask(good("3")), "3")
	})
	t.Run("A19 nothing after a refusal", func(t *testing.T) {
		before := len(w.judge.decisions())
		w.isRefused(text(message{body: "{}"}.String()+good("2").String()), http.StatusBadRequest)
		if after := len(w.judge.decisions()); after != before {
			t.Error("the second request came through")
		}
	})
}
