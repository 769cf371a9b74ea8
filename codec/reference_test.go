// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// review is an AdmissionReview under test: a plain one, changed by the test.
type review struct {
	apiVersion string
	request    map[string]any
}

// plainReview is what kube-apiserver sends for a small Pod.
func plainReview() review {
	pods := map[string]any{"group": "", "version": "v1", "resource": "pods"}
	pod := map[string]any{"group": "", "version": "v1", "kind": "Pod"}
	return review{
		apiVersion: "admission.k8s.io/v1",
		request: map[string]any{
			"uid": "0f7c9d0e", "kind": pod, "resource": pods, "requestKind": pod, "requestResource": pods,
			"name": "web", "namespace": "shop", "operation": "CREATE",
			"userInfo": map[string]any{"username": "ann", "uid": "7", "groups": []string{"dev", "system:authenticated"},
				"extra": map[string]any{"scopes": []string{"a", "b"}}},
			"object": map[string]any{"kind": "Pod", "apiVersion": "v1",
				"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "o1", "labels": map[string]any{"app": "web", "tier": "front"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry/web:1"}}}},
			"oldObject": nil, "dryRun": false, "options": map[string]any{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
		},
	}
}

// with sets fields of the request.
func (r review) with(kv ...any) review {
	for i := 0; i < len(kv); i += 2 {
		r.request[kv[i].(string)] = kv[i+1]
	}
	return r
}

// without removes fields of the request.
func (r review) without(names ...string) review {
	for _, name := range names {
		delete(r.request, name)
	}
	return r
}

func (r review) json() string {
	b, err := json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": r.apiVersion, "request": r.request})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// raw is JSON that goes into a review as it is.
func raw(s string) json.RawMessage { return json.RawMessage(s) }

// swap returns the plain review with old, which must be there, replaced.
func swap(t testing.TB, old, with string) string {
	t.Helper()
	plain := plainReview().json()
	if !strings.Contains(plain, old) {
		t.Fatalf("no %s in %s", old, plain)
	}
	return strings.Replace(plain, old, with, 1)
}

// decode returns the Review of body, valid until the end of the test, and
// Decode's error.
func decode(t testing.TB, body string) (*codec.Review, error) {
	t.Helper()
	b := codec.NewBody([]byte(body), func(data []byte) { clear(data) })
	r := codec.AcquireReview()
	err := r.Decode(b)
	b.Release()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	return r, err
}

func mustDecode(t testing.TB, body string) *codec.Review {
	t.Helper()
	r, err := decode(t, body)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return r
}
