// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// E15, with connections: a webhook that denies everything, and joins when it is
// ready, is registered before its server is there. It is pending, visibly in each
// answer that it would have had a part in, and decides as soon as it is served; when
// it leaves, its Target is drained.
func TestE15NewWebhookJoinsWhenItAnswers(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	client := w.clientOf(p.awaitReady())
	late := w.lateWebhook()
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	w.write("registry/late.yaml", fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: late}
webhooks:
- name: late.example.com
  clientConfig: {url: "https://%s/late", caBundle: %s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: late}
spec: {webhooks: ["late/*"], join: WhenReady}
`, late.Listener.Addr(), ca))
	eventually(t, "the webhook is pending", func() bool {
		status, body := p.readiness()
		return status == http.StatusOK && strings.Contains(body, "webhook late/late.example.com is pending")
	})
	if v, err := ask(client); err != nil || !v.allowed || !strings.Contains(strings.Join(v.warnings, "\n"), `webhook "late.example.com" (Pending`) {
		t.Errorf("while it is pending: %+v, %v", v, err)
	}
	late.StartTLS()
	eventually(t, "the webhook decides", func() bool {
		v, err := ask(client)
		return err == nil && !v.allowed && strings.Contains(v.message, "late says no")
	})
	w.remove("registry/late.yaml")
	eventually(t, "its Target is drained", func() bool { return w.logged("webhook target is drained, safe to stop") })
	if v, err := ask(client); err != nil || !v.allowed {
		t.Errorf("when it has left: %+v, %v", v, err)
	}
}

// lateWebhook is a server that listens, and shakes no hands until it is started.
func (w *world) lateWebhook() *httptest.Server {
	return w.denying("late", pki.OnLoopback("late"))
}

// denying is a webhook, not started yet, that denies everything in its name.
func (w *world) denying(name string, s pki.Subject) *httptest.Server {
	w.t.Helper()
	return w.newWebhook(w.authority, s, func(rw http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		_ = json.NewDecoder(r.Body).Decode(&review) // ours
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"%s says no"}}}`, review.Request.UID, name)
	})
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// A webhook that accepts connections before it can read reviews is pending until it
// answers one, where its binding asks for that; a denial will do.
func TestE15ProbeReview(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	client := w.clientOf(p.awaitReady())
	late := w.lateWebhook()
	var reads atomic.Bool
	denies := late.Config.Handler
	late.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !reads.Load() {
			http.Error(rw, "still loading policies", http.StatusServiceUnavailable)
			return
		}
		denies.ServeHTTP(rw, r)
	})
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	w.write("registry/late.yaml", fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: late}
webhooks:
- name: late.example.com
  clientConfig: {url: "https://%s/late", caBundle: %s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: late}
spec: {webhooks: ["late/*"], join: WhenReady, probe: Review}
`, late.Listener.Addr(), ca))
	pending := func(cause string) func() bool {
		return func() bool {
			_, body := p.readiness()
			return strings.Contains(body, "webhook late/late.example.com is pending: "+cause+"\n")
		}
	}
	eventually(t, "the webhook is pending: it shakes no hands", pending("BadAnswer"))
	late.StartTLS()
	eventually(t, "the webhook is pending: it reads no reviews", pending("HTTPStatus"))
	if v, err := ask(client); err != nil || !v.allowed {
		t.Errorf("while it is pending: %+v, %v", v, err)
	}
	reads.Store(true)
	eventually(t, "the webhook decides", func() bool {
		v, err := ask(client)
		return err == nil && !v.allowed && strings.Contains(v.message, "late says no")
	})
}
