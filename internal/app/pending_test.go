// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
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
	eventually(t, "the webhook is pending: it shakes no hands", pending("Timeout"))
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

// A probe asks as the phase of the webhook does: what a mutating webhook answers may
// change the object, and a validating one's may not. What is wrong with an answer is
// told apart from a denial that is none.
func TestE15ProbeReviewIsOfThePhase(t *testing.T) {
	const patch = `"allowed":true,"patchType":"JSONPatch","patch":"W10="`
	for name, tt := range map[string]struct {
		mutating bool
		answer   func(c *call)
		pending  string // empty: it joins
	}{
		"a patch of a mutating webhook":   {true, func(c *call) { c.say(patch) }, ""},
		"a patch of a validating webhook": {false, func(c *call) { c.say(patch) }, "the dry-run review of a probe: received invalid webhook response: "},
		"no review":                       {false, func(c *call) { _, _ = io.WriteString(c.rw, "nonsense") }, "the dry-run review of a probe: received invalid webhook response: "},
		"a denial":                        {false, (*call).deny, ""},
		"an allow of another review":      {false, func(c *call) { c.uid = "other"; c.say(`"allowed":true`) }, "the dry-run review of a probe: received invalid webhook response: "},
		"a denial of another review":      {false, func(c *call) { c.uid = "other"; c.deny() }, "the dry-run review of a probe is answered with an unclear denial: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.register(hook{name: "first"})
			r.bind("{join: WhenReady, probe: Review}")
			r.play(tt.answer)
			r.start()
			r.register(hook{name: "first"}, hook{name: "policy", mutating: tt.mutating})
			if tt.pending != "" {
				r.eventually("it is pending", func() bool {
					s, err := r.process.status(http.DefaultClient)
					return err == nil && len(s.Pending) == 1 && strings.Contains(s.Pending[0].Reason, tt.pending)
				})
				return
			}
			r.eventually("it joins", func() bool {
				s, err := r.process.status(http.DefaultClient)
				return err == nil && len(s.Pending) == 0 && s.History[0].Webhooks == 2
			})
		})
	}
}

// Who stops a webhook's pods waits for the dispatcher to have done with them: as long
// as a call is under way at a Target that no configuration has any more, it is said.
func TestDrainingIsSaid(t *testing.T) {
	r := newRig(t)
	before, release := r.webhook.URL+"/policy", make(chan struct{})
	r.bind("mode: Shadow") // such a call outlives its admission
	r.play(func(c *call) { c.until(release); c.allow() })
	r.start().allows(question{})
	r.eventually("a call is under way", func() bool { return len(r.calls("policy")) > 0 })
	r.register(hook{name: "other"})
	note := "webhook target " + before + " is draining: not yet safe to stop"
	r.eventually("it is said", func() bool {
		status, body := r.process.readiness()
		return status == http.StatusOK && strings.Contains(body, note)
	})
	close(release)
	r.eventually("it is over", func() bool { _, body := r.process.readiness(); return !strings.Contains(body, note) })
}
