// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hang is how long the slow webhook thinks: longer than anybody waits for it.
const hang = 2 * time.Second

// webhooks are the sample webhooks behind the paths of the example manifests.
// They note who was asked about which review.
type webhooks struct {
	mu    sync.Mutex
	asked map[string][]string // uid -> paths, in order of arrival
}

func newWebhooks() *webhooks { return &webhooks{asked: map[string][]string{}} }

// handler serves all sample webhooks.
func (w *webhooks) handler() http.Handler {
	mux := http.NewServeMux()
	for path, p := range map[string]policy{
		"/images":   images,
		"/owner":    owner,
		"/replicas": replicas,
		"/labels":   labels,
		"/licenses": licenses(hang),
	} {
		mux.Handle("POST "+path, w.serve(path[1:], p))
	}
	return mux
}

// serve wraps a policy in the protocol of admission.k8s.io/v1. A policy that
// returns nil is a server error.
func (w *webhooks) serve(name string, p policy) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
			http.Error(rw, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		w.note(string(review.Request.UID), name)
		resp := p(review.Request)
		if resp == nil {
			http.Error(rw, "out of order", http.StatusInternalServerError)
			return
		}
		resp.UID = review.Request.UID
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: resp})
	})
}

func (w *webhooks) note(uid, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[uid] = append(w.asked[uid], name)
}

// askedAbout returns the names of the webhooks that were asked about uid, sorted.
func (w *webhooks) askedAbout(uid string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.asked[uid]))
}

func deny(code int32, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: message}}
}
