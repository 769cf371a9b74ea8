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
	"sync/atomic"
	"testing"
)

// canary begins every planted secret.
const canary = "canary-"

// planter makes secrets, each another one. It is safe for concurrent use.
type planter struct{ planted atomic.Int64 }

func (p *planter) secret() string { return fmt.Sprintf("%s%06d", canary, p.planted.Add(1)) }

// object is an object with secrets in every position but its name, kind and
// namespace: keys, values, lists, labels, annotations.
func (p *planter) object(kind string) string {
	nested := func() map[string]any {
		return map[string]any{p.secret(): p.secret(), "list": []any{p.secret(), map[string]any{"value": p.secret()}}}
	}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{
			"name": "p", "namespace": "shop", "uid": p.secret(), "generateName": p.secret(),
			"labels": map[string]any{"a": p.secret(), p.secret(): "b"}, "annotations": map[string]any{"a": p.secret(), p.secret(): p.secret()},
		},
		"spec": map[string]any{"secret": p.secret(), "deep": nested()}, "data": nested(), "stringData": nested(), "status": nested(),
	})
	return string(text)
}

// review is a review with secrets.
func (p *planter) review(kind string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",`+
		`"kind":{"group":"","version":"v1","kind":%q},"resource":{"group":"","version":"v1","resource":%q},`+
		`"name":"p","namespace":"shop","operation":"UPDATE","userInfo":{"username":"ann","extra":{"token":[%q]}},`+
		`"object":%s,"oldObject":%s,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions","fieldManager":%q}}}`,
		kind, strings.ToLower(kind)+"s", p.secret(), p.object(kind), p.object(kind), p.secret())
}

// reviews are reviews that can be judged, or denied at least.
func (p *planter) reviews() []string {
	whole := p.review("Pod")
	return []string{
		whole,
		p.review("Secret"),
		p.review("ConfigMap"),
		strings.Replace(whole, `"labels":{`, fmt.Sprintf(`"labels":{%q:1,`, p.secret()), 1),
		strings.Replace(whole, `"extra":{`, fmt.Sprintf(`"extra":{%q:%q,`, p.secret(), p.secret()), 1),
		strings.Replace(whole, `"extra":{`, fmt.Sprintf(`"extra":{%q:[%q,1],`, p.secret(), p.secret()), 1),
		strings.Replace(whole, `"spec":{`, fmt.Sprintf(`"spec":{%[1]q:%[2]q,%[1]q:%[2]q,`, p.secret(), p.secret()), 1),
	}
}

// broken are reviews that are turned away.
func (p *planter) broken() []string {
	whole := p.review("Pod")
	return []string{
		whole[:len(whole)-40], // cut
		whole + p.secret(),    // trailing
		strings.Replace(whole, `"metadata":{`, fmt.Sprintf(`"metadata":{"labels":{"x":%q},"labels":{"x":%q},`, p.secret(), p.secret()), 1),
		strings.Replace(whole, `"metadata":{`, fmt.Sprintf(`"metadata":%q,"Metadata":{`, p.secret()), 1),
		strings.Replace(whole, `"object":{`, fmt.Sprintf(`"object":%q,"object":{`, p.secret()), 1),
		strings.Replace(whole, `"spec":{`, fmt.Sprintf("\"spec\":{\"x\":\"%s\xff\",", p.secret()), 1),
		strings.Replace(whole, `"spec":{`, fmt.Sprintf(`"spec":{"%s\ud800":1,`, p.secret()), 1),
		strings.Replace(whole, `"spec":{`, fmt.Sprintf(`"spec":{%q:%s,`, p.secret(), p.secret()), 1),
		strings.Replace(whole, `"extra":{`, fmt.Sprintf(`"extra":{%q:[%s],`, p.secret(), p.secret()), 1),
		p.secret(),
	}
}

// duplicated are reviews with a secret for a key that is there twice, where keys
// are the sender's to make up; and where they are not.
func (p *planter) duplicated() []string {
	whole := p.review("Pod")
	var all []string
	for _, object := range []string{`"labels":{`, `"metadata":{`, `"extra":{`, `"userInfo":{`, `"request":{`, `"resource":{`, `{`} {
		value := `"v"`
		if object == `"extra":{` {
			value = `["v"]`
		}
		twice := fmt.Sprintf(`%[1]q:%[2]s,%[1]q:%[2]s,`, p.secret(), value)
		all = append(all, strings.Replace(whole, object, object+twice, 1))
	}
	return all
}

// answers are what the webhook says: patches that apply and that do not, and what
// is no answer at all.
func (p *planter) answers() []func(http.ResponseWriter, string) {
	apply := func(ops string) func(http.ResponseWriter, string) {
		return says(fmt.Sprintf(`"allowed":true,"auditAnnotations":{"a":%q},`, p.secret()) + patch(ops))
	}
	return []func(http.ResponseWriter, string){
		says(`"allowed":true`),
		apply(fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/x","value":%q}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"remove","path":"/metadata/labels/%s"}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"test","path":"/spec/secret","value":%q}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":%q,"path":"/x"}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"copy","from":"/%s","path":"/x"}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"add","path":%q}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"replace","path":"/metadata/namespace","value":%q}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"replace","path":"/kind","value":%q}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"remove","path":"/x",%[1]q:1,%[1]q:2}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"replace","path":"/metadata/labels","value":{%[1]q:"a",%[1]q:"b"}}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"replace","path":"/metadata/labels","value":{%q:1}}]`, p.secret())),
		apply(fmt.Sprintf(`[{"op":"add","path":"/metadata/%[1]s","value":{%[1]q:%[2]q,%[1]q:%[2]q}}]`, p.secret(), p.secret())),
		apply(p.secret()),
		says(fmt.Sprintf(`"allowed":true,%[1]q:1,%[1]q:2`, p.secret())),
		says(fmt.Sprintf(`"allowed":true,"auditAnnotations":{%[1]q:"a",%[1]q:"b"}`, p.secret())),
		says(fmt.Sprintf(`"allowed":true,"auditAnnotations":{%q:1}`, p.secret())),
		says(fmt.Sprintf(`"allowed":false,"status":{%[1]q:1,%[1]q:2,"details":{%[2]q:1,%[2]q:%[1]s}}`, p.secret(), p.secret())),
		says(fmt.Sprintf(`"allowed":true,"patch":%q,"patchType":%q`, p.secret(), p.secret())),
		says(fmt.Sprintf(`"allowed":%q`, p.secret())),
		raw(p.secret()),
		raw(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"response":{"uid":%q,"allowed":true}}`, p.secret(), p.secret(), p.secret())),
		status(http.StatusInternalServerError, p.secret()),
		func(rw http.ResponseWriter, _ string) {
			rw.Header().Set("Content-Type", "text/"+p.secret())
			_, _ = io.WriteString(rw, p.secret())
		},
	}
}

// canaryManifests have a webhook in each phase, with conditions that fail on what
// they find in the object.
const canaryManifests = `---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: %[2]s}
webhooks:
- name: %[2]s.example.com
  clientConfig: {url: %[3]q, caBundle: %[4]s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: %[5]s
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
  matchConditions: [{name: fails, expression: %[6]q}]
`

func (w *world) configureCanaries() {
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	var out bytes.Buffer
	for i, condition := range []string{
		"true",
		"int(object.spec.secret) > 0",
		"timestamp(object.spec.secret) > timestamp('2020-01-01T00:00:00Z')",
		"duration(object.spec.secret) > duration('1s')",
		"quantity(object.spec.secret).isGreaterThan(quantity('1'))",
		"url(object.spec.secret).getHost() == ''",
		"'a'.matches(object.spec.secret + '(')",
		"object.spec.deep[object.spec.secret] == ''",
		"double(object.metadata.labels.a) > 1.0",
	} {
		for _, kind := range []string{"Validating", "Mutating"} {
			policy := []string{"Ignore", "Fail"}[i%2]
			name := fmt.Sprintf("%s-%d", strings.ToLower(kind), i)
			fmt.Fprintf(&out, canaryManifests, kind, name, w.webhook.URL+"/"+name, ca, policy, condition)
		}
	}
	w.write("registry/webhooks.yaml", out.Bytes())
	w.write("registry/binding.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: unspared}\nspec: {webhooks: ['*/*'], breaker: {enabled: false}}\n"))
}

// TestCanaries plants secrets in every string of reviews and of answers, and looks
// for them in everything that the process tells: the log at its lowest level,
// spans, metrics, pages, the decision log, and what the caller reads.
//
// The rule for keys: what is wrong is located by names that every review has. Of a
// key that somebody made up (a label, an annotation, userInfo.extra, anything else
// inside an object or an answer) the one exception is the answer to a review that
// has it twice: it names the key to whoever sent it, and to nobody else.
func TestCanaries(t *testing.T) {
	receiver, w := newReceiver(t, overHTTP), newWorld(t)
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	w.configureCanaries()
	p := w.start("lameDuck: 0s\nlog: {level: debug}\ntelemetry: {userNames: true, decisionLog: {file: decisions}}\n")
	c := w.clientOf(p.awaitReady())
	plant := &planter{}
	var told strings.Builder
	for _, review := range plant.duplicated() { // first: few lines of a kind are logged
		if answer := heard(t, c, "validate", review); !strings.Contains(answer, "/"+canary) || !strings.Contains(answer, "duplicate key") {
			t.Errorf("the sender does not learn which key is there twice: %s", answer)
		}
	}
	for _, review := range plant.broken() {
		told.WriteString(heard(t, c, "validate", review))
	}
	for plant.planted.Load() < 1000 {
		for _, answer := range plant.answers() {
			w.answers(answer)
			for _, review := range plant.reviews() {
				for _, phase := range []string{"validate", "mutate"} {
					told.WriteString(heard(t, c, phase, review))
				}
			}
		}
	}
	told.WriteString(p.scrape())
	_, page := p.readiness()
	told.WriteString(page)
	p.end()
	decisions, err := os.ReadFile(filepath.Join(w.dir, "decisions"))
	if err != nil || len(decisions) == 0 {
		t.Fatalf("no decision log: %v", err)
	}
	told.Write(decisions)
	told.WriteString(receiver.text())
	w.mu.Lock()
	told.WriteString(w.logs.String())
	w.mu.Unlock()
	for line := range strings.Lines(told.String()) {
		if strings.Contains(line, canary) {
			t.Fatalf("of %d secrets one is told: %s", plant.planted.Load(), line)
		}
	}
	t.Logf("%d secrets, %d bytes told", plant.planted.Load(), told.Len())
}

// heard sends a review and returns what the caller reads but for the patch.
func heard(t *testing.T, c *http.Client, phase, review string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1/v1/clusters/east/"+phase+"?timeout=10s", strings.NewReader(review)) //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Response struct {
			Status   json.RawMessage `json:"status"`
			Warnings []string        `json:"warnings"`
		} `json:"response"`
	}
	if json.Unmarshal(body, &got) != nil {
		return string(body) + "\n"
	}
	return fmt.Sprintf("%s %s\n", got.Response.Status, got.Response.Warnings)
}
