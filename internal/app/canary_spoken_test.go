// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// spoken begins every secret in what a webhook has the user told: its caller reads
// it, and so does who reads the decision log, but nobody else.
const spoken = "spoken-"

// speaker makes such secrets, each another one.
type speaker struct{ n int }

func (s *speaker) secret() string {
	s.n++
	return fmt.Sprintf("%s%06d", spoken, s.n)
}

// answers are denials and others with a secret in every string that the user or
// the audit log may get, and those that are no answer at all.
func (s *speaker) answers() []func(http.ResponseWriter, string) {
	status := func() string {
		return fmt.Sprintf(`"status":{"message":%q,"reason":%q,"code":422,"details":{"name":%q,"causes":[{"reason":%q,"message":%q,"field":%q}]}}`,
			s.secret(), s.secret(), s.secret(), s.secret(), s.secret(), s.secret())
	}
	extra := func() string {
		return fmt.Sprintf(`"warnings":[%q,%q],"auditAnnotations":{%q:%q,"a":%q}`, s.secret(), s.secret(), s.secret(), s.secret(), s.secret())
	}
	cry := s.secret()
	return []func(http.ResponseWriter, string){
		says(`"allowed":false,` + status()),
		says(fmt.Sprintf(`"allowed":false,"status":{"reason":%q}`, s.secret())),
		says(`"allowed":false,` + status() + "," + extra()),
		says(`"allowed":true,` + status() + "," + extra()),
		says(`"allowed":true,` + extra()),
		s.redirect(),
		func(http.ResponseWriter, string) { panic(cry) }, // breaks the connection
		func(rw http.ResponseWriter, _ string) {
			rw.Header().Set("X-"+spoken+"header", spoken+"value")
			rw.Header().Set("Set-Cookie", spoken+"cookie")
			http.Error(rw, spoken+"body", http.StatusBadGateway)
		},
	}
}

func (s *speaker) redirect() func(http.ResponseWriter, string) {
	location := "https://user:" + s.secret() + "@other.example.com/" + s.secret() + "?token=" + s.secret()
	return func(rw http.ResponseWriter, _ string) {
		rw.Header().Set("Location", location)
		rw.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// configureModes registers a webhook in each phase and mode, but for those that
// would only repeat another.
func (w *world) configureModes() {
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	var hooks, bindings bytes.Buffer
	for _, mode := range []string{"Enforce", "Warn", "Shadow"} {
		for kind, policy := range map[string]string{"Validating": "Fail", "Mutating": "Ignore"} {
			name := strings.ToLower(kind + "-" + mode)
			fmt.Fprintf(&hooks, canaryManifests, kind, name, w.webhook.URL+"/"+name, ca, policy, "true")
			fmt.Fprintf(&bindings, "---\napiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: %s}\n"+
				"spec: {webhooks: ['%s/*'], mode: %s, breaker: {enabled: false}}\n", name, name, mode)
		}
	}
	w.write("registry/webhooks.yaml", hooks.Bytes())
	w.write("registry/binding.yaml", bindings.Bytes())
}

// TestSpokenCanaries plants secrets in what webhooks say to users, at every level of
// the log and in both encodings of reviews. The log, spans, metrics and pages have
// none of them; nor of those in reviews, which the decision log does not have either.
func TestSpokenCanaries(t *testing.T) {
	for level, secrets := range map[string]int{"debug": 1000, "info": 500, "warn": 500, "error": 500} {
		t.Run(level, func(t *testing.T) {
			receiver, w := newReceiver(t, overHTTP), newWorld(t)
			w.configureModes()
			p := w.start("lameDuck: 0s\nlog: {level: " + level + ", allowsPerSecond: 100}\ntelemetry: {userNames: true, decisionLog: {file: decisions}}\n")
			c := w.clientOf(p.awaitReady())
			plant, speak := &planter{}, &speaker{}
			answered := w.speakTo(c, plant, speak, secrets)
			told := p.pages()
			p.end()
			decisions, err := os.ReadFile(filepath.Join(w.dir, "decisions"))
			if err != nil || !bytes.Contains(decisions, []byte(spoken)) {
				t.Errorf("the decision log does not say what webhooks said: %v", err)
			}
			w.mu.Lock()
			log := w.logs.String()
			w.mu.Unlock()
			spans := receiver.text()
			if !strings.Contains(spans, "validating-enforce") {
				t.Error("no spans")
			}
			for line := range strings.Lines(told + spans + log) {
				if strings.Contains(line, canary) || strings.Contains(line, spoken) {
					t.Fatalf("told: %s", line)
				}
			}
			for line := range strings.Lines(answered + string(decisions)) {
				if strings.Contains(line, canary) {
					t.Fatalf("told: %s", line)
				}
			}
			t.Logf("%d secrets, %d bytes told", int(plant.planted.Load())+speak.n, len(told)+len(spans)+len(log))
		})
	}
}

// speakTo has every answer given to reviews in both phases and encodings, until so
// many secrets are planted, and returns what the caller reads.
func (w *world) speakTo(c *http.Client, plant *planter, speak *speaker, secrets int) string {
	var answered strings.Builder
	for int(plant.planted.Load())+speak.n < secrets {
		for _, answer := range speak.answers() {
			w.answers(answer)
			for _, kind := range []string{"Pod", "Secret"} {
				review := plant.review(kind)
				for _, phase := range []string{"validate", "mutate"} {
					answered.WriteString(w.post(c, phase, "application/json", review))
					answered.WriteString(w.post(c, phase, "application/vnd.kubernetes.protobuf", w.inProtobuf(review)))
				}
			}
		}
	}
	return answered.String()
}

// inProtobuf returns a review in Kubernetes' protobuf.
func (w *world) inProtobuf(review string) string {
	w.t.Helper()
	body := codec.NewBody([]byte(review), nil)
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		w.t.Fatal(err)
	}
	return string(r.AppendProtobuf(nil, r.Version, nil))
}

func (w *world) post(c *http.Client, phase, contentType, review string) string {
	w.t.Helper()
	resp, err := c.Post("https://127.0.0.1/v1/clusters/east/"+phase+"?timeout=10s", contentType, strings.NewReader(review)) //nolint:noctx // bounded by the test
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("HTTP status %d, %v", resp.StatusCode, err)
	}
	return string(body) + "\n"
}

// pages returns every page of the admin listener.
func (p *process) pages() string {
	p.t.Helper()
	var all strings.Builder
	for _, path := range []string{
		"", "api/v1/status", "clusters/east", "metrics", "readyz", "livez",
		"webhooks/validating-enforce/validating-enforce.example.com", "webhooks/mutating-warn/mutating-warn.example.com",
	} {
		resp, err := http.Get(p.app.AdminURL() + path) //nolint:noctx // bounded by the test
		if err != nil {
			p.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			p.t.Fatalf("/%s: HTTP status %d, %v", path, resp.StatusCode, err)
		}
		all.Write(body)
	}
	http.DefaultClient.CloseIdleConnections()
	return all.String()
}
