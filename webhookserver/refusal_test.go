// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

const limit = 1 << 10

// Each refusal has its status and says what is wrong.
func TestRefusals(t *testing.T) {
	valid := encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"}))
	binary := encode(t, mediaProtobuf, review(v1, &admissionv1.AdmissionRequest{UID: "a"}))
	large := append(bytes.Repeat([]byte(" "), limit), valid...)
	for _, test := range []struct {
		name, method, target string
		header               []string
		body                 io.Reader
		status               int
		text                 string
	}{
		{name: "get", method: http.MethodGet, status: 405, text: "GET is not served here"},
		{name: "put", method: http.MethodPut, body: bytes.NewReader(valid), status: 405, text: "PUT is not served here"},
		{name: "no content type", header: []string{"Content-Type", ""}, body: bytes.NewReader(valid), status: 415, text: `Content-Type "" is not read here`},
		{name: "yaml", header: []string{"Content-Type", "application/yaml"}, body: bytes.NewReader(valid), status: 415, text: "application/yaml"},
		{name: "malformed content type", header: []string{"Content-Type", ";"}, body: bytes.NewReader(valid), status: 415, text: "send application/json or application/vnd.kubernetes.protobuf"},
		{name: "brotli", header: []string{"Content-Encoding", "br"}, body: bytes.NewReader(valid), status: 415, text: `Content-Encoding "br" is not read here`},
		{name: "two codings", header: []string{"Content-Encoding", "gzip", "Content-Encoding", "zstd"}, body: bytes.NewReader(valid), status: 415, text: `"gzip, zstd"`},
		{name: "too large", body: bytes.NewReader(large), status: 413, text: "exceeds 1024 bytes"},
		{name: "too large, of unknown length", body: unsized(large), status: 413, text: "exceeds 1024 bytes"},
		{name: "too large once decompressed, gzip", header: []string{"Content-Encoding", "gzip"}, body: bytes.NewReader(gzipped(t, large)), status: 413, text: "decompresses"},
		{name: "too large once decompressed, zstd", header: []string{"Content-Encoding", "zstd"}, body: bytes.NewReader(zstded(t, large)), status: 413, text: "decompresses"},
		{name: "too large once decompressed, zstd that does not say so", header: []string{"Content-Encoding", "zstd"}, body: bytes.NewReader(zstdedStream(t, large)), status: 413, text: "decompresses"},
		{name: "a gzip bomb", header: []string{"Content-Encoding", "gzip"}, body: bytes.NewReader(gzipped(t, make([]byte, 500<<10))), status: 413, text: "decompresses"},
		{name: "not gzip", header: []string{"Content-Encoding", "gzip"}, body: bytes.NewReader(valid), status: 400, text: "with gzip"},
		{name: "gzip cut short", header: []string{"Content-Encoding", "gzip"}, body: bytes.NewReader(gzipped(t, valid)[:30]), status: 400, text: "with gzip"},
		{name: "not zstd", header: []string{"Content-Encoding", "zstd"}, body: bytes.NewReader(valid), status: 400, text: "with zstd"},
		{name: "timeout without a unit", target: "/?timeout=10", body: bytes.NewReader(valid), status: 400, text: `timeout="10" is not a positive duration`},
		{name: "timeout of zero", target: "/?timeout=0s", body: bytes.NewReader(valid), status: 400, text: "positive duration"},
		{name: "empty", body: http.NoBody, status: 400, text: "as an AdmissionReview in application/json"},
		{name: "not json", body: strings.NewReader("k8s"), status: 400, text: "as an AdmissionReview in application/json"},
		{name: "trailing bytes", body: io.MultiReader(bytes.NewReader(valid), strings.NewReader("{}")), status: 400, text: "as an AdmissionReview"},
		{name: "json called protobuf", header: []string{"Content-Type", mediaProtobuf}, body: bytes.NewReader(valid), status: 400, text: "does not appear to be a protobuf message"},
		{name: "protobuf called json", body: bytes.NewReader(binary), status: 400, text: "in application/json"},
		{name: "protobuf cut short", header: []string{"Content-Type", mediaProtobuf}, body: bytes.NewReader(binary[:len(binary)-1]), status: 400, text: "unexpected EOF"},
		{name: "another kind", body: strings.NewReader(`{"apiVersion":"v1","kind":"Pod"}`), status: 400, text: "/v1, Kind=Pod is not read here"},
		{name: "another version", body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview","request":{"uid":"a"}}`), status: 400, text: "admission.k8s.io/v2"},
		{name: "no request", body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), status: 400, text: "has no request"},
		{name: "no uid", body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`), status: 400, text: "has no uid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			method, target := test.method, test.target
			if method == "" {
				method = http.MethodPost
			}
			if target == "" {
				target = "/"
			}
			r := httptest.NewRequest(method, target, test.body)
			r.Header.Set("Content-Type", mediaJSON)
			if len(test.header) > 0 && test.header[0] == "Content-Type" {
				r.Header.Del("Content-Type")
			}
			for i := 0; i < len(test.header); i += 2 {
				r.Header.Add(test.header[i], test.header[i+1])
			}
			w := httptest.NewRecorder()
			webhookserver.New(allow, webhookserver.Options{MaxBytes: limit}).ServeHTTP(w, r)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.text) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, test.status, test.text)
			}
			advertised(t, w.Header(), "application/json, application/vnd.kubernetes.protobuf")
			if (w.Header().Get("Allow") == http.MethodPost) != (test.status == 405) {
				t.Errorf("Allow is %q", w.Header().Get("Allow"))
			}
		})
	}
}

// The limit is one, before and after: what is exactly as large passes.
func TestLimitIsInclusive(t *testing.T) {
	body := encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"}))
	body = append(bytes.Repeat([]byte(" "), limit-len(body)), body...)
	h := webhookserver.New(allow, webhookserver.Options{MaxBytes: limit})
	for coding, sent := range map[string][]byte{"": body, "identity": body, "GZIP": gzipped(t, body), "gzip": gzipped(t, body), "zstd": zstded(t, body)} {
		if w := post(h, "/", sent, "Content-Type", mediaJSON, "Content-Encoding", coding); w.Code != http.StatusOK {
			t.Errorf("%q: %d %s", coding, w.Code, w.Body)
		}
	}
	if w := post(h, "/", zstdedStream(t, body), "Content-Type", mediaJSON, "Content-Encoding", "zstd"); w.Code != http.StatusOK {
		t.Errorf("a stream of zstd: %d %s", w.Code, w.Body)
	}
}

func gzipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(plain)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zstdEncoder is shared: it takes longer to make than to use.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) })

func zstded(t testing.TB, plain []byte) []byte {
	t.Helper()
	z, err := zstdEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(plain, nil)
}

// zstdedStream returns a frame that does not tell its content's size.
func zstdedStream(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	z.Write(plain)
	z.Flush() // else a short stream is written as one frame of known size
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
