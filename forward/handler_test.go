// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
)

// F45: requests and answers pass as they are, under the certificate of the cluster.
func TestByteForByte(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB: sent while it comes
	for name, c := range map[string]struct {
		uri     string
		body    []byte
		headers []string
		status  int
		answer  string
		with    []string // headers of the answer
	}{
		"a review":           {path0 + "?timeout=10s", []byte("{\"a\": \"é\\u00e9\"}\n"), []string{"Content-Type", "application/json"}, 200, "{\"kind\":\"AdmissionReview\"}\n", []string{"Content-Type", "application/json"}},
		"no timeout":         {path0, []byte("x"), nil, 200, "y", nil},
		"a segment":          {path0 + "/0123456789ab?timeout=1s&x=%2F+a", nil, nil, 200, "", nil},
		"an escaped path":    {"/v1/clusters/east%2Fwest/validate", nil, nil, 404, "no such path\n", nil},
		"bytes of all kinds": {path0, []byte{0, 0xff, '\r', '\n', 0x80}, []string{"Content-Type", "application/vnd.kubernetes.protobuf", "Content-Encoding", "gzip"}, 200, "\x00\xff\r\n", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}},
		"a large one":        {path0, large, nil, 200, string(large), nil},
		"refused":            {path0, nil, nil, 403, "the credentials are not those of this cluster\n", []string{"Content-Type", "text/plain; charset=utf-8"}},
		"refused for the method of the dispatcher": {path0, nil, nil, 405, "", []string{"Allow", "POST"}},
		"unavailable":         {path0, nil, nil, 503, "there is no configuration yet\n", nil},
		"a redirect":          {path0, nil, nil, 307, "", []string{"Location", "/elsewhere"}},
		"a compressed answer": {path0, nil, []string{"Accept-Encoding", "gzip"}, 200, "not really", []string{"Content-Encoding", "gzip"}},
		"a trace":             {path0, nil, []string{"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "a=b"}, 200, "", nil},
	} {
		t.Run("F45 "+name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(c.with); i += 2 {
					rw.Header().Set(c.with[i], c.with[i+1])
				}
				rw.Header().Set("Retry-After", "5")
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, c.answer)
			})
			w.start()
			got := w.call(c.uri, c.body, append(c.headers, "Authorization", "Bearer of-the-caller", "User-Agent", "kube-apiserver-admission", "Cookie", "a=b")...)
			if got.err != nil || got.status != c.status || got.body != c.answer {
				t.Fatalf("the answer is %d, %.100q, %v, want %d, %.100q", got.status, got.body, got.err, c.status, c.answer)
			}
			for i := 0; i < len(c.with); i += 2 {
				if value := got.header.Get(c.with[i]); value != c.with[i+1] && c.with[i] != "Location" {
					t.Errorf("the answer's %s is %q, want %q", c.with[i], value, c.with[i+1])
				}
			}
			if got.header.Get("Retry-After") != "" || got.header.Get("Location") != "" {
				t.Errorf("the caller would call again: %v", got.header)
			}
			all := w.got()
			if len(all) != 1 {
				t.Fatalf("%d requests", len(all))
			}
			if r := all[0]; r.uri != c.uri || r.cluster != "east" || !bytes.Equal(r.body, c.body) {
				t.Errorf("the dispatcher received %s of %q, %.100q, want %s, %.100q", r.uri, r.cluster, r.body, c.uri, c.body)
			}
			for i := 0; i < len(c.headers); i += 2 {
				if value := all[0].header.Get(c.headers[i]); value != c.headers[i+1] {
					t.Errorf("%s is %q, want %q", c.headers[i], value, c.headers[i+1])
				}
			}
			for _, name := range []string{"Authorization", "Cookie", "X-Forwarded-For", "Forwarded", "Via"} {
				if value := all[0].header.Get(name); value != "" {
					t.Errorf("the dispatcher received %s: %q", name, value)
				}
			}
			if agent := all[0].header.Get("User-Agent"); agent != "kube-apiserver-admission" {
				t.Errorf("the User-Agent is %q", agent)
			}
		})
	}
}

// F45: what is not for the dispatcher does not reach it.
func TestRefused(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.start()
	for name, c := range map[string]struct {
		method, uri string
		body        io.Reader
		want        int
	}{
		"another path":   {http.MethodPost, "/metrics", nil, http.StatusNotFound},
		"a dotted path":  {http.MethodPost, "/v1/x/../clusters/east/validate", nil, http.StatusNotFound},
		"another method": {http.MethodGet, path0, nil, http.StatusMethodNotAllowed},
		"no length":      {http.MethodPost, path0, io.MultiReader(strings.NewReader("a")), http.StatusLengthRequired},
	} {
		t.Run("F45 "+name, func(t *testing.T) {
			if got := w.send(t.Context(), c.method, c.uri, c.body); got.status != c.want {
				t.Errorf("%+v, want %d", got, c.want)
			}
		})
	}
	t.Run("F45 a body beyond all", func(t *testing.T) {
		conn, err := tls.Dial("tcp", w.forwarder.Address().String(), &tls.Config{RootCAs: w.authority.Pool(), ServerName: "forwarder.admission.svc"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, "POST "+path0+" HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("HTTP/1.1 413"))
		if _, err := io.ReadFull(conn, line); err != nil || !strings.HasSuffix(string(line), "413") {
			t.Errorf("%q, %v", line, err)
		}
	})
	if n := len(w.got()); n != 0 {
		t.Errorf("%d requests reached the dispatcher", n)
	}
}
