// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// FuzzScreen compares what passes with what net/http reads: where the two see
// different lengths there is room for a smuggled request (A11, A12).
func FuzzScreen(f *testing.F) {
	const head = "POST /v1/clusters/a/validate?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for _, lines := range []string{
		"Content-Length: 5\r\n",
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n",
		"X: y\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"Content-Length: 5\r\nContent-Length: 6\r\n",
		"Content-Length: 5\nExpect: 100-continue\r\n",
	} {
		f.Add([]byte(head + lines + "\r\n12345"))
	}
	cfg := Config{BodyLimit: 8 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h fasthttp.RequestHeader
		if err := h.Read(bufio.NewReaderSize(bytes.NewReader(data), 64<<10)); err != nil {
			return
		}
		if _, r := readHead(&h, &cfg); r != accepted {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return // stricter than fasthttp; both close the connection
		}
		switch {
		case len(req.TransferEncoding) > 0:
			t.Errorf("Transfer-Encoding %q came through", req.TransferEncoding)
		case int64(max(0, h.ContentLength())) != req.ContentLength:
			t.Errorf("Content-Length %d, net/http reads %d", h.ContentLength(), req.ContentLength)
		case req.Method != http.MethodPost:
			t.Errorf("method %q came through", req.Method)
		case req.RequestURI != string(h.RequestURI()):
			t.Errorf("URI %q, net/http reads %q", h.RequestURI(), req.RequestURI)
		}
	})
}
