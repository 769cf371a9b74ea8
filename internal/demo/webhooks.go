// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
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
	for path, policy := range map[string]webhookserver.Func{
		"/images":   images,
		"/owner":    owner,
		"/replicas": replicas,
		"/labels":   labels,
		"/licenses": licenses(hang),
	} {
		mux.Handle(path, webhookserver.New(w.noted(path[1:], policy), webhookserver.Options{NativeObjects: true}))
	}
	return mux
}

// noted returns the policy, which notes whom it is asked about.
func (w *webhooks) noted(name string, policy webhookserver.Func) webhookserver.Func {
	return func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		w.note(string(req.UID), name)
		return policy(ctx, req)
	}
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
