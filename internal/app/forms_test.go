// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

const formJSON, formProtobuf = "application/json", "application/vnd.kubernetes.protobuf"

// largePod is worth compressing.
var largePod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"shop","annotations":{"note":"` + strings.Repeat("all work and no play ", 2000) + `"}}}`

// formWorld is a world whose webhook can be replaced by another version of it, and
// notes in which form it is asked.
type formWorld struct {
	*world
	old     http.Handler // reads JSON alone
	process *process
	client  *http.Client
	pod     string // the object that is reviewed

	mu      sync.Mutex
	handler http.Handler
	seen    []string
	native  int // objects that came as native protobuf
}

// newFormWorld registers the webhook, with a binding of this spec.
func newFormWorld(t *testing.T, binding string, options webhookserver.Options) *formWorld {
	t.Helper()
	w := &formWorld{world: newWorld(t)}
	w.pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"shop"}}`
	w.old, w.handler = w.webhook.Config.Handler, webhookserver.New(w.review, options)
	w.webhook.Config.Handler = http.HandlerFunc(w.serve)
	w.write("registry/binding.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: forms}\nspec: {webhooks: [\"*/*\"], "+binding+"}\n"))
	w.process = w.start("lameDuck: 0s\n")
	w.client = w.clientOf(w.process.awaitReady())
	return w
}

func (w *formWorld) review(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	pod, err := webhookserver.Object[corev1.Pod](req)
	if err != nil || pod.Name != "p" || req.UID != "u-1" {
		return webhookserver.Denied(http.StatusBadRequest, "it is another review")
	}
	if strings.HasPrefix(string(req.Object.Raw), "k8s\x00") {
		w.native++ // under the lock of serve
	}
	return webhookserver.Allowed()
}

func (w *formWorld) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	form := r.Header.Get("Content-Type")
	if coding := r.Header.Get("Content-Encoding"); coding != "" {
		form += " " + coding
	}
	w.seen = append(w.seen, form)
	w.handler.ServeHTTP(rw, r)
}

// becomes replaces the webhook.
func (w *formWorld) becomes(h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = h
}

// asked sends a review, which is to be allowed and reach the webhook in these forms.
func (w *formWorld) asked(forms ...string) {
	w.t.Helper()
	text := strings.Replace(podReview, `{"metadata":{"name":"p"}}`, w.pod, 1)
	req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1/v1/clusters/east/validate?timeout=10s", strings.NewReader(text)) //nolint:noctx // bounded by the test
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	v, err := exchangeReview(w.client, req)
	if err != nil || !v.allowed {
		w.t.Fatalf("%+v, %v", v, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.seen, forms) {
		w.t.Errorf("asked in %q, want %q", w.seen, forms)
	}
	w.seen = nil
}

// jsonAlone answers what is not JSON with garbled, and does not say what it reads.
func (w *formWorld) jsonAlone(garbled http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == formJSON && r.Header.Get("Content-Encoding") == "" {
			w.old.ServeHTTP(rw, r)
			return
		}
		garbled(rw, r)
	})
}

// A webhook that says what it reads gets that from its second review on.
func TestForms(t *testing.T) {
	for _, row := range []struct {
		name, binding string
		native, large bool
		form          string
		natives       int
	}{
		{name: "protobuf", binding: "encoding: Auto", form: formProtobuf},
		{name: "native protobuf", binding: "encoding: Auto", native: true, form: formProtobuf, natives: 2},
		{name: "compressed", binding: "encoding: JSON, compression: Auto", large: true, form: formJSON + " zstd"},
		{name: "a pinned coding that is not offered before", binding: "encoding: JSON, compression: Gzip", large: true, form: formJSON + " gzip"},
		{name: "all of it", binding: "encoding: Auto, compression: Auto", native: true, large: true, form: formProtobuf + " zstd", natives: 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFormWorld(t, row.binding, webhookserver.Options{NativeObjects: row.native})
			if row.large {
				w.pod = largePod
			}
			first := formJSON
			if strings.Contains(row.binding, "compression: Gzip") {
				first = row.form
			}
			w.asked(first)
			w.asked(row.form)
			w.asked(row.form)
			if w.native != row.natives {
				t.Errorf("%d objects came in native protobuf, want %d", w.native, row.natives)
			}
		})
	}
}

// gzip is learned too, from a webhook that reads no better.
func TestFormOfGzip(t *testing.T) {
	w := newFormWorld(t, "compression: Auto", webhookserver.Options{})
	w.pod = largePod
	reads := w.handler
	w.becomes(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		reads.ServeHTTP(onlyGzip{rw}, r)
	}))
	w.asked(formJSON)
	w.asked(formJSON + " gzip")
}

// onlyGzip changes what an answer offers.
type onlyGzip struct{ http.ResponseWriter }

func (w onlyGzip) Write(body []byte) (int, error) {
	w.Header().Del("Accept-Post")
	w.Header().Set("Accept-Encoding", "gzip")
	return w.ResponseWriter.Write(body)
}

// A webhook that is rolled back to one that reads JSON alone gets that within the
// same call, whatever it answers to what it does not read, and that is counted,
// logged and shown.
func TestFormOfARolledBackWebhook(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	answer := func(contentType, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(rw, body)
		}
	}
	once, twice := []string{formProtobuf, formJSON}, []string{formProtobuf, formProtobuf, formJSON}
	for _, row := range []struct {
		name    string
		garbled http.HandlerFunc
		asked   []string
	}{
		{"400", status(http.StatusBadRequest), once},
		{"500", status(http.StatusInternalServerError), once},
		{"an empty 200", status(http.StatusOK), once},
		{"HTML", answer("text/html", "<p>what?</p>"), once},
		{"a denial of nothing", answer(formJSON, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"","allowed":false}}`), once},
		// A connection that was idle is tried anew first: its end may say nothing.
		{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, twice},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFormWorld(t, "encoding: Auto", webhookserver.Options{})
			w.asked(formJSON)
			w.asked(formProtobuf)
			if !w.logged("a webhook offers another form of reviews") {
				t.Error("the form is learned and nothing is logged")
			}
			w.becomes(w.jsonAlone(row.garbled))
			w.asked(row.asked...)
			w.asked(formJSON)
			if n := w.loggedTimes("a webhook is sent plain reviews again"); n == 0 || n > 2 {
				t.Errorf("logged %d times", n)
			}
			if want := `dispatcher_webhook_misread_total{configuration="policy",webhook="policy.example.com"} 1.0`; !strings.Contains(w.process.scrape(), want) {
				t.Errorf("the metrics lack %s", want)
			}
			if status, err := w.process.status(http.DefaultClient); err != nil || !strings.HasPrefix(status.Targets[0].Reads, "JSON") {
				t.Errorf("the status says %+v, %v", status.Targets, err)
			}
		})
	}
}

// A webhook that is rolled back to one that makes do with what it is sent, and says
// nothing of it, is asked in JSON from then on.
func TestFormIsNotOfferedAnyMore(t *testing.T) {
	w := newFormWorld(t, "encoding: Auto", webhookserver.Options{})
	w.asked(formJSON)
	w.asked(formProtobuf)
	w.becomes(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":true}}`)
	}))
	w.asked(formProtobuf)
	w.asked(formJSON)
}

// What an operator pins is not taken back with what was learned.
func TestPinnedFormStays(t *testing.T) {
	w := newFormWorld(t, "encoding: Protobuf, compression: Auto", webhookserver.Options{})
	w.pod = largePod
	w.asked(formProtobuf)
	w.asked(formProtobuf + " zstd")
	reads := w.handler
	w.becomes(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Encoding") != "" {
			http.Error(rw, "no", http.StatusInternalServerError)
			return
		}
		reads.ServeHTTP(rw, r)
	}))
	w.asked(formProtobuf+" zstd", formProtobuf)
	w.asked(formProtobuf)
}
