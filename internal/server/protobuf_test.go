// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// inProtobuf returns the review of a JSON body in Kubernetes' protobuf.
func inProtobuf(t testing.TB, body string) string {
	t.Helper()
	received := codec.NewBody([]byte(body), nil)
	defer received.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(received); err != nil {
		t.Fatal(err)
	}
	return string(r.AppendProtobuf(nil, r.Version, nil))
}

// asProtobuf is a message with that Content-Type.
func asProtobuf(contentType, body string) message {
	return message{body: body, headers: fmt.Sprintf("Content-Type: %s\r\nContent-Length: %d\r\n", contentType, len(body))}
}

// answered reads an answer in protobuf.
func answered(t testing.TB, got answer, uid string, v codec.Version) codec.Response {
	t.Helper()
	if ct := got.header.Get("Content-Type"); got.status != http.StatusOK || ct != protobuf {
		t.Fatalf("status %d, Content-Type %q, body %q", got.status, ct, got.body)
	}
	resp, err := codec.Verify([]byte(got.body), codec.Expectation{UID: []byte(uid), Version: v})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestProtobuf(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.Decompress = true })
	c := w.dial()
	for _, ct := range []string{protobuf, "Application/Vnd.Kubernetes.Protobuf", protobuf + "; x=y"} {
		t.Run("A9 "+ct, func(t *testing.T) {
			if !answered(t, c.ask(asProtobuf(ct, inProtobuf(t, review("1")))), "1", codec.V1).Allowed {
				t.Error("denied")
			}
		})
	}
	t.Run("A9 the review is the same", func(t *testing.T) {
		for _, d := range w.judge.decisions() {
			if d.uid != "1" || d.phase != chain.Validating {
				t.Errorf("got %+v", d)
			}
		}
	})
	t.Run("A10 compressed", func(t *testing.T) {
		m := asProtobuf(protobuf, string(codec.AppendCompressed(nil, codec.Zstd, []byte(inProtobuf(t, review("2"))))))
		m.extra = "Content-Encoding: zstd\r\n"
		answered(t, c.ask(m), "2", codec.V1)
	})
	t.Run("B8 v1beta1", func(t *testing.T) {
		answered(t, c.ask(asProtobuf(protobuf, inProtobuf(t, reviewOf("v1beta1", "3")))), "3", codec.V1beta1)
	})
	t.Run("B10 a denial in kind", func(t *testing.T) {
		body := strings.Replace(inProtobuf(t, review("4")), "CREATE", "CREATX", 1)
		if resp := answered(t, c.ask(asProtobuf(protobuf, body)), "4", codec.V1); resp.Allowed || resp.Code != http.StatusBadRequest {
			t.Errorf("got %+v", resp)
		}
	})
	t.Run("B5 a denial in kind", func(t *testing.T) {
		body := strings.Replace(inProtobuf(t, review("4")), "jane", "jan\xff", 1)
		if resp := answered(t, c.ask(asProtobuf(protobuf, body)), "4", codec.V1); resp.Allowed || resp.Code != http.StatusBadRequest {
			t.Errorf("got %+v", resp)
		}
	})
	t.Run("A14 a denial in kind", func(t *testing.T) {
		body := inProtobuf(t, strings.Replace(review("4"), `"jane"`, `"`+strings.Repeat("x", 2000)+`"`, 1))
		m := asProtobuf(protobuf, body)
		m.target = "/v1/clusters/small/validate"
		got := w.dialAs(pki.Subject{CommonName: "small"}).ask(m)
		if resp := answered(t, got, "4", codec.V1); resp.Allowed || resp.Code != http.StatusRequestEntityTooLarge || !got.close {
			t.Errorf("got %+v", resp)
		}
	})
	t.Run("JSON on the same connection", func(t *testing.T) { c.isAllowed(c.ask(good("5")), "5") })
}

func TestProtobufRefused(t *testing.T) {
	w := newWorld(t, nil)
	good := inProtobuf(t, review("1"))
	for _, tt := range []struct {
		name string
		m    message
	}{
		{"B1 JSON that says protobuf", asProtobuf(protobuf, review("1"))},
		{"B1 protobuf that says JSON", message{body: good}},
		{"B1 truncated", asProtobuf(protobuf, good[:60])},
		{"B2 trailing bytes", asProtobuf(protobuf, good+"x")},
		{"B3 two reviews", asProtobuf(protobuf, good+good[4:])},
	} {
		t.Run(tt.name, func(t *testing.T) { w.isRefused(tt.m, http.StatusBadRequest) })
	}
	w.judge.none(t)
}
