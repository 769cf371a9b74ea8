// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// A webhook that says what it reads gets that from its second review on, and plain
// JSON again, within the same call, when it is rolled back to one that does not.
func TestForms(t *testing.T) {
	w := newWorld(t)
	speaks := webhookserver.New(func(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var pod struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(req.Object.Raw, &pod); err != nil || pod.Metadata.Name != "p" || req.UID != "u-1" {
			return webhookserver.Denied(http.StatusBadRequest, "it is another review")
		}
		return webhookserver.Allowed()
	}, webhookserver.Options{})
	old := w.webhook.Config.Handler
	var (
		mu      sync.Mutex
		seen    []string
		handler = speaks
	)
	w.webhook.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Content-Type"))
		h := handler
		mu.Unlock()
		h.ServeHTTP(rw, r)
	})
	c := w.clientOf(w.start("lameDuck: 0s\n").awaitReady())
	asked := func(want ...string) {
		t.Helper()
		mu.Lock()
		seen = nil
		mu.Unlock()
		v, err := ask(c)
		if err != nil || !v.allowed {
			t.Fatalf("%+v, %v", v, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != len(want) {
			t.Fatalf("asked in %q, want %q", seen, want)
		}
		for i := range want {
			if seen[i] != want[i] {
				t.Errorf("asked in %q, want %q", seen, want)
			}
		}
	}
	const plain, protobuf = "application/json", "application/vnd.kubernetes.protobuf"
	asked(plain)
	asked(protobuf)
	asked(protobuf)
	mu.Lock()
	handler = old // answers 400 to what is not JSON
	mu.Unlock()
	asked(protobuf, plain)
	asked(plain)
}
