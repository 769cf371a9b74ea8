// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decide is how one webhook answers.
type decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// webhooks is a server of many webhooks, each at a path of its own.
type webhooks struct {
	*scripted.Server
	client *http.Client // trusts what the world's authority has issued

	mu    sync.Mutex
	calls map[string][]call
}

// call is what a webhook was asked.
type call struct {
	header  http.Header
	request *admissionv1.AdmissionRequest
}

func newWebhooks(in *world) (*webhooks, error) {
	certificate, err := in.issue("webhooks", "policy.webhooks.svc")
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: in.pki.Pool()}}}
	return &webhooks{Server: scripted.Serve(certificate), client: client, calls: map[string][]call{}}, nil
}

// handle makes path answer by d; nil: with 404.
func (w *webhooks) handle(path string, d decide) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, path)
	w.Handle(path, func(c *scripted.Call) { w.answer(c, d) })
}

// callsOf returns what the webhook at path was asked since handle.
func (w *webhooks) callsOf(path string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.calls[path]...)
}

func (w *webhooks) answer(c *scripted.Call, d decide) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(c.Body, &review); err != nil || review.Request == nil {
		http.Error(c, "not a review", http.StatusBadRequest)
		return
	}
	path := c.Request.URL.Path
	w.mu.Lock()
	w.calls[path] = append(w.calls[path], call{c.Request.Header.Clone(), review.Request})
	w.mu.Unlock()
	if d == nil {
		http.NotFound(c, c.Request)
		return
	}
	response := d(review.Request)
	if response == nil {
		c.Hang()
		return
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	text, err := json.Marshal(review)
	if err != nil {
		http.Error(c, err.Error(), http.StatusInternalServerError)
		return
	}
	c.Send(http.StatusOK, text)
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
