// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decide is how one webhook answers.
type decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// webhooks is a server of many webhooks, each at a path of its own.
type webhooks struct {
	server *httptest.Server
	mu     sync.Mutex
	paths  map[string]decide
	calls  map[string][]call
	over   chan struct{} // closed at the end: those that hang go on
}

// call is what a webhook was asked.
type call struct {
	header  http.Header
	request *admissionv1.AdmissionRequest
}

func newWebhooks(a *authority) (*webhooks, error) {
	certificate, err := a.issue("webhooks", "policy.webhooks.svc")
	if err != nil {
		return nil, err
	}
	w := &webhooks{paths: map[string]decide{}, calls: map[string][]call{}, over: make(chan struct{})}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	return w, nil
}

// handle makes path answer by d.
func (w *webhooks) handle(path string, d decide) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths[path] = d
	delete(w.calls, path)
}

// callsOf returns what the webhook at path was asked since handle.
func (w *webhooks) callsOf(path string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.calls[path]...)
}

func (w *webhooks) serve(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "not a review", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	d := w.paths[r.URL.Path]
	w.calls[r.URL.Path] = append(w.calls[r.URL.Path], call{r.Header.Clone(), review.Request})
	w.mu.Unlock()
	if d == nil {
		http.NotFound(rw, r)
		return
	}
	response := d(review.Request)
	if response == nil { // hangs
		select {
		case <-r.Context().Done():
		case <-w.over:
		}
		return
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}

func (w *webhooks) close() {
	close(w.over)
	w.server.Close()
}

func allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// hang never answers.
func hang(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil }

func deny(code int32, message string) decide {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: message}}
	}
}

// patch answers with a JSON patch.
func patch(operations string) decide {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: &kind}
	}
}
