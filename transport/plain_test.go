// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

// whatIsRead is an answer as fasthttp reads it.
func whatIsRead(t *testing.T, answer []byte, limit int) (reply Reply, length int) {
	t.Helper()
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	resp.Header.SetNoDefaultContentType(true)
	r := bufio.NewReaderSize(bytes.NewReader(answer), readBuffer)
	if err := resp.ReadLimitBody(r, limit); err != nil {
		t.Fatalf("fasthttp does not read %q: %v", answer, err)
	}
	if resp.ConnectionClose() {
		t.Fatalf("the connection is to be closed after %q", answer)
	}
	rest, _ := r.Peek(r.Buffered())
	reply = replyOf(resp, limit)
	for _, field := range []*[]byte{&reply.ContentType, &reply.ContentEncoding, &reply.AcceptPost, &reply.AcceptEncoding, &reply.Location, &reply.RetryAfter, &reply.Body} {
		*field = bytes.Clone(*field)
	}
	return reply, len(answer) - len(rest)
}

// FuzzPlainReply reads what is plain as fasthttp does, and no other way however little of it
// has come.
func FuzzPlainReply(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, fields := range []string{
		"Content-Length: 2\r\n", "content-length:2\r\nDate: Sun\r\nAccept-Post: a, b\r\nACCEPT-ENCODING: zstd \r\n", "Content-Length: 3\r\n", "Content-Length: 0\r\n",
		"Content-Type: application/json\r\nContent-Length: 2\r\nContent-Encoding:\tgzip\r\n", "Content-Length: 2\r\nContent-Length: 2\r\n", "Content-Length: 2\r\nConnection: close\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "Content-Length : 2\r\n", "Content-Length: +2\r\n", " Content-Length: 2\r\n", "Content-Length: 2\n", "X:\r\n y\r\nContent-Length: 2\r\n",
		"Content-Length: 99999999999999999999\r\n", ": a\r\nContent-Length: 2\r\n", "Content-Type: a\r\nContent-Type: b\r\nContent-Length: 2\r\n", "",
		"Accept-Post:\r\nAccept-Post: a\r\nContent-Length: 2\r\n", "Content-Encoding: \t\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n", "Content-Type:\r\nContent-Length: 2\r\n",
	} {
		f.Add([]byte(ok+fields+"\r\n{}"), 100)
	}
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 100)
	f.Fuzz(func(t *testing.T, answer []byte, limit int) {
		limit = max(limit, 1)
		reply, length, is := plainReply(answer, limit)
		for n := range answer {
			_, more, before := plainReply(answer[:n], limit)
			switch {
			case before == whole && (is != whole || n < length):
				t.Fatalf("the first %d bytes of %q are taken for the whole", n, answer)
			case before == other && is != other:
				t.Fatalf("the first %d bytes of %q are not taken for the beginning", n, answer)
			case before == partial && (more <= n || is == whole && more > length):
				t.Fatalf("%d bytes are waited for after %d of %q", more, n, answer)
			}
		}
		if is != whole || length > readBuffer {
			return
		}
		want, end := whatIsRead(t, answer, limit)
		for _, field := range []*[]byte{&reply.ContentType, &reply.ContentEncoding, &reply.AcceptPost, &reply.AcceptEncoding, &reply.Body} {
			*field = bytes.Clone(*field)
		}
		if d := cmp.Diff(want, reply, cmp.Transformer("", func(b []byte) string { return string(b) })); d != "" || end != length {
			t.Fatalf("%q of %d bytes, of which fasthttp reads %d (-fasthttp +here):\n%s", answer, length, end, d)
		}
	})
}

// What servers of this kind answer is plain, and what is not about one answer alone is not.
func TestPlainReply(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for answer, want := range map[string]look{
		// net/http's server, as it answers a small body.
		ok + "Content-Type: application/json\r\nDate: Sun, 22 Nov 2026 10:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}": whole,
		ok + "Accept-Post: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{} ":               whole,
		ok + "Content-Length: 2\r\n\r\n{":                                        partial,
		ok + "Content-Length: 2\r\n":                                             partial,
		"HTTP/1.1 20":                                                            partial,
		"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}":                    other,
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}":                         other,
		ok + "\r\n{}":                                                            other,
		ok + "Content-Length: 101\r\n\r\n" + strings.Repeat(" ", 101):            other,
		ok + "Content-Length: 2\r\nConnection: close\r\n\r\n{}":                  other,
		ok + "Content-Length: 2\r\nConnection: keep-alive\r\n\r\n{}":             other,
		ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}":         other,
		ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}":                  other,
		ok + "Content-Length: 2\r\nRetry-After: 3\r\n\r\n{}":                     other,
		ok + "Content-Length: 2\r\nLocation: /\r\n\r\n{}":                        other,
		ok + "Content-Length: 2\r\nUpgrade: h2c\r\n\r\n{}":                       other,
		ok + "Content-Length: 2\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n{}": other,
		ok + "Content-Length: 2\r\nAccept-Post:\r\nAccept-Post: a\r\n\r\n{}":     other,
		ok + "Content-Length: 2\r\nX: \x7f\r\n\r\n{}":                            other,
		ok + "Content-Length: 2\r\nX_Y: 1\r\n\r\n{}":                             other,
		ok + "Content-Length: 2\r\nX: 1\n\r\n{}":                                 other,
	} {
		reply, _, is := plainReply([]byte(answer), 100)
		if is != want || is == whole && string(reply.Body) != "{}" {
			t.Errorf("%q: %d, want %d, body %q", answer, is, want, reply.Body)
		}
	}
}
