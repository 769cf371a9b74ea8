// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestReviews(t *testing.T) {
	w := newWorld(t, nil)
	replaced := func(old, with string) string {
		r := review("1")
		if !strings.Contains(r, old) {
			t.Fatalf("%q is not in the review", old)
		}
		return strings.Replace(r, old, with, 1)
	}
	for _, tt := range []struct{ name, body, text string }{
		{"B1 null", "null", ""},
		{"B1 array", "[]", ""},
		{"B1 truncated", review("1")[:100], ""},
		{"B1 white space", "  ", ""},
		{"B2 trailing bytes", review("1") + "x", ""},
		{"B2 second document", review("1") + review("2"), ""},
		{"B2 BOM", "\xef\xbb\xbf" + review("1"), ""},
		{"B3 two uids", replaced(`"uid":`, `"uid":"2","uid":`), "/request/uid"},
		{"B4 case variant", replaced(`"request"`, `"Request"`), ""},
		{"B7 other kind", replaced(`"AdmissionReview"`, `"Pod"`), ""},
		{"B7 unknown version", replaced(`k8s.io/v1"`, `k8s.io/v2"`), ""},
		{"B9 request null", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, ""},
		{"B9 request absent", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, ""},
		{"B9 uid absent", replaced(`"uid":"1",`, ``), ""},
		{"B9 uid empty", replaced(`"uid":"1"`, `"uid":""`), ""},
		{"B9 uid not a string", replaced(`"uid":"1"`, `"uid":1`), ""},
		{"B9 uid too long", replaced(`"uid":"1"`, `"uid":"`+strings.Repeat("x", 129)+`"`), ""},
		{"B9 uid with control characters", replaced(`"uid":"1"`, `"uid":"1\n"`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.isRefused(message{body: tt.body}, http.StatusBadRequest)
			if !strings.HasPrefix(got.body, "the body is not a readable AdmissionReview: ") || !strings.Contains(got.body, tt.text) {
				t.Errorf("body %q", got.body)
			}
			for _, c := range strings.TrimSuffix(got.body, "\n") {
				if c < ' ' || c > '~' {
					t.Errorf("body %q is not plain ASCII", got.body)
				}
			}
		})
	}
	for _, tt := range []struct{ name, body, text string }{
		{"B3 duplicate key in request", replaced(`"name":`, `"name":"a","name":`), "/request/name: duplicate key"},
		{"B3 duplicate label", replaced(`"metadata":{`, `"metadata":{"labels":{"x.io/a":"","x.io/a":""},`), "/request/object/metadata/labels/x.io~1a: duplicate key"},
		{"B3 a pointer is cleaned", replaced(`"uid":`, `"\u202e<script>":1,"\u202e<script>":1,"uid":`), "at /request: duplicate key"},
		{"B4 case variant beside the request", replaced(`"request"`, `"Request":{},"request"`), "/Request: the key is a case variant"},
		{"B4 case variant at the root of the object", replaced(`"metadata"`, `"Metadata":{},"metadata"`), "/request/object/Metadata: the key is a case variant of metadata"},
		{"B4 case variant behind everything else", replaced(`"metadata":{"name":"web"}`, `"metadata":{"name":"web"},"aPiVersion":""`), "/request/object/aPiVersion"},
		{"B5 invalid UTF-8 in a name", replaced(`"jane"`, "\"\xff\""), "invalid UTF-8"},
		{"B5 lone surrogate in a name", replaced(`"jane"`, `"\ud800"`), "/request/userInfo/username: "},
		{"B6 nesting 10,001", replaced(`"metadata":{"name":"web"}`, `"metadata":{"name":"web"},"x":`+strings.Repeat("[", 9_998)+strings.Repeat("]", 9_998)), "nested deeper than 10,000"},
		{"B10 operation absent", replaced(`"operation":"CREATE",`, ``), "/request/operation"},
		{"B10 operation unknown", replaced(`"CREATE"`, `"READ"`), "/request/operation"},
		{"B10 resource absent", replaced(`"resource":{"group":"","version":"v1","resource":"pods"},`, ``), "/request/resource"},
		{"B13 object not an object", replaced(`"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`, `"object":7`), "/request/object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := w.dial()
			got := c.ask(message{body: tt.body})
			if got.status != http.StatusOK || !strings.Contains(got.body, `"uid":"1","allowed":false`) || !strings.Contains(got.body, `"code":400`) || !strings.Contains(got.body, tt.text) {
				t.Errorf("status %d, body %q", got.status, got.body)
			}
			c.isAllowed(c.ask(message{target: "/v1/clusters/a/mutate", body: review("2")}), "2") // the connection lives
		})
	}
	t.Run("B5 strings of the webhooks are forwarded", func(t *testing.T) {
		body := replaced(`"metadata":{"name":"web"}`, "\"metadata\":{\"name\":\"web\"},\"spec\":{\"a\":\"\\ud800\",\"b\":\"\xff\"}")
		c := w.dial()
		c.isAllowed(c.ask(message{body: body}), "1")
		if got := w.judge.last(t).body; got != body {
			t.Errorf("decided %q", got)
		}
	})
	t.Run("B8 v1beta1", func(t *testing.T) {
		c := w.dial()
		got := c.ask(message{body: reviewOf("v1beta1", "1")})
		c.isAllowed(got, "1")
		if !strings.Contains(got.body, `"apiVersion":"admission.k8s.io/v1beta1"`) {
			t.Errorf("body %q", got.body)
		}
	})
}

func TestDenial(t *testing.T) {
	w := newWorld(t, nil)
	w.judge.do = func(_ context.Context, _ dispatcher.Request) codec.Response {
		return codec.Response{Code: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: "later", RetryAfterSeconds: 5}
	}
	c := w.dial()
	got := c.ask(good("1"))
	if got.status != http.StatusOK || got.close || !strings.Contains(got.body, `"allowed":false`) || !strings.Contains(got.body, `"code":429`) {
		t.Errorf("%+v", got)
	}
	for _, header := range []string{"Retry-After", "Server", "Date"} {
		if got.header.Get(header) != "" {
			t.Errorf("header %s", header)
		}
	}
}

func TestBodyOutlivesTheRequest(t *testing.T) {
	w := newWorld(t, nil)
	kept := make(chan *codec.Body, 1)
	w.judge.do = func(_ context.Context, req dispatcher.Request) codec.Response {
		select {
		case kept <- req.Review.Body.Retain():
		default:
		}
		return codec.Response{Allowed: true}
	}
	c := w.dial()
	c.isAllowed(c.ask(good("1")), "1")
	body := <-kept
	defer body.Release()
	for range 100 { // whoever recycled the memory would overwrite it
		c.isAllowed(c.ask(good("2")), "2")
	}
	if got := string(body.Bytes()); got != review("1") {
		t.Errorf("the body has become %q", got)
	}
}

func TestNoSnapshot(t *testing.T) {
	w := newWorld(t, nil)
	w.snapshot = nil
	w.isRefused(good("1"), http.StatusServiceUnavailable)
}

// Whatever becomes of a request, the Snapshot that it was judged by is given back: one
// that is kept could never be replaced, nor its Targets be closed.
func TestSnapshotsAreReleased(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	r := registry.New(registry.Settings{Sources: manifest.Directories(filepath.Dir(file)), Logger: slog.New(slog.DiscardHandler)})
	load := func(label string) {
		manifest := "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: a, labels: {step: \"" + label + "\"}}\nspec: {authentication: {certificate: {commonNames: [a]}}}\n"
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Error(err)
		}
		if problems := r.Load(); len(problems) > 0 {
			t.Error(problems)
		}
	}
	load("")
	w := newWorld(t, func(cfg *server.Config) { cfg.Snapshot, cfg.BodyLimit = r.Acquire, 1<<20 })
	for name, request := range map[string]message{
		"allowed":     good("1"),
		"forbidden":   {target: "/v1/clusters/b/validate", body: review("1")},
		"not found":   {target: "/v1", body: review("1")},
		"no review":   {body: "{}"},
		"undecodable": {body: strings.Replace(review("1"), `"operation":"CREATE"`, `"operation":"NONE"`, 1)},
		"too large":   {body: strings.Repeat(" ", 2<<20)},
	} {
		const more = 8 // than may be in use: the next one waits for the end of one
		replaced := make(chan struct{})
		for n := range more {
			w.dial().ask(request)
			go func() { load(fmt.Sprint(strings.ReplaceAll(name, " ", "-"), n)); replaced <- struct{}{} }()
			select {
			case <-replaced:
			case <-time.After(patience):
				t.Fatalf("%s: the Snapshot is kept", name)
			}
		}
	}
}

func TestPanic(t *testing.T) {
	w := newWorld(t, nil)
	w.judge.do = func(context.Context, dispatcher.Request) codec.Response { panic("bug") }
	c := w.dial()
	got := c.ask(good("1"))
	if got.status != http.StatusOK || !strings.Contains(got.body, `"uid":"1","allowed":false`) || !strings.Contains(got.body, `"code":500`) {
		t.Errorf("%+v", got)
	}
	w.judge.do = nil
	c.isAllowed(c.ask(good("2")), "2")
	if lines := w.logs.lines(); !strings.Contains(lines[0], `"panic":"a value of type string"`) {
		t.Errorf("records %q", lines)
	}
}

func TestPanicBeforeTheReviewIsRead(t *testing.T) {
	var broken atomic.Bool
	w := newWorld(t, func(cfg *server.Config) {
		current := cfg.Snapshot
		cfg.Snapshot = func() *registry.Snapshot {
			if broken.Load() {
				panic("bug")
			}
			return current()
		}
	})
	c := w.dial()
	c.isAllowed(c.ask(good("1")), "1") // the handshake is over
	broken.Store(true)
	c.refusedWith(c.ask(good("2")), http.StatusInternalServerError)
	isCut(t, w, w.clientTLS(pki.Subject{CommonName: "a"})) // and one in the handshake ends only that
	broken.Store(false)
	c = w.dial()
	c.isAllowed(c.ask(good("3")), "3")
	if log := strings.Join(w.logs.lines(), "\n"); strings.Count(log, `"panic":"a value of type string"`) != 2 || !strings.Contains(log, `"path":"/v1/clusters/a/validate"`) {
		t.Errorf("the log: %s", log)
	}
}

// clumsy is a Decider that cannot even decline.
type clumsy struct{ server.Decider }

func (clumsy) Decline(context.Context, dispatcher.Request, dispatcher.Defect, *dispatcher.Verdict) {
	panic("bug")
}

// A review that cannot be judged is denied although declining it fails.
func TestPanicOfADecline(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.Decider = clumsy{cfg.Decider} })
	c := w.dial()
	got := c.ask(message{body: strings.Replace(review("1"), `"operation":"CREATE"`, `"operation":"NONE"`, 1)})
	if got.status != http.StatusOK || !strings.Contains(got.body, `"uid":"1","allowed":false`) || !strings.Contains(got.body, `"code":500`) {
		t.Errorf("%+v", got)
	}
	c.isAllowed(c.ask(good("2")), "2")
}
