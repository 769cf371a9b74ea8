// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an answer comes to, as docs/contract.md writes it: allow, deny (with the
// webhook's own code), D(n) for a denial of ours, A! for an allow that says that
// it was not checked.
const (
	allow = "allow"
	deny  = "deny 403"
	open  = "A!"
	d500  = "D500"
)

// numbered is a list of n texts that differ, as JSON.
func numbered(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("w", i)
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// TestAnswers plays the rows C against the whole process: an HTTP
// answer of a webhook, and what the caller gets under Fail and under Ignore.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	w.write("registry/webhooks.yaml", policies(w))
	// One webhook that answers wrong in every way would soon be spared.
	w.write("registry/binding.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: unspared}\nspec: {webhooks: ['*/*'], breaker: {enabled: false}}\n"))
	p := w.start("lameDuck: 0s\nlimits: {responseBytes: 262144}\n")
	c := w.clientOf(p.awaitReady())
	for _, row := range answerRows() {
		t.Run(row.name, func(t *testing.T) {
			w.answers(row.answer)
			for policy, want := range map[string]string{"fail": row.fail, "ignore": row.ignore} {
				got := askAs(t, c, row.phase, policy, row.operation)
				if got.verdict(policy) != want {
					t.Errorf("under %s: %s, want %s (%+v)", policy, got.verdict(policy), want, got)
				}
				if row.check != nil {
					row.check(t, got)
				}
			}
		})
	}
}

// policies registers the webhook four times: in both phases, failing closed for
// the namespace "fail" and open for the namespace "ignore".
func policies(w *world) []byte {
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	var out bytes.Buffer
	for _, kind := range []string{"Validating", "Mutating"} {
		for _, policy := range []string{"Fail", "Ignore"} {
			name := strings.ToLower(policy)
			fmt.Fprintf(&out, `---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: %[2]s}
webhooks:
- name: %[2]s.example.com
  clientConfig: {url: %[3]q, caBundle: %[4]s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  failurePolicy: %[5]s
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
`, kind, name, w.webhook.URL+"/"+name, ca, policy)
		}
	}
	return out.Bytes()
}

type answerRow struct {
	name, phase, operation string
	answer                 func(rw http.ResponseWriter, uid string)
	fail, ignore           string
	check                  func(t *testing.T, got response)
}

// answerRows returns the rows. "+" marks where we are stricter than kube-apiserver.
func answerRows() []answerRow {
	const ops = `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`
	rows := []answerRow{
		{name: "C1 valid allow", answer: says(`"allowed":true`), fail: allow, ignore: allow},
		{name: "C1 valid deny", answer: says(`"allowed":false,"status":{"code":403,"message":"no"}`), fail: deny, ignore: deny},
		{name: "C2 uid of another, an allow", answer: raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"other","allowed":true}}`), fail: d500, ignore: open},
		{name: "C2 kind missing, an allow", answer: raw(`{"apiVersion":"admission.k8s.io/v1","response":{"uid":"$UID","allowed":true}}`), fail: d500, ignore: open},
		{name: "C3 uid of another, a deny", answer: raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"other","allowed":false}}`), fail: d500, ignore: d500},
		{name: "C4 response null", answer: raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":null}`), fail: d500, ignore: open},
		{name: "C5 allowed twice, once false", answer: says(`"allowed":true,"allowed":false`), fail: d500, ignore: d500},
		{name: "C5 allowed twice, both true", answer: says(`"allowed":true,"allowed":true`), fail: d500, ignore: open},
		{name: "C6 only a case variant", answer: says(`"Allowed":true`), fail: d500, ignore: d500},
		{name: "C7 allowed of a wrong type", answer: says(`"allowed":"true"`), fail: d500, ignore: open},
		{name: "C8 allowed absent", answer: says(`"warnings":[]`), fail: "deny 400", ignore: "deny 400"},
		{name: "C9 trailing bytes", answer: raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":true}}x`), fail: d500, ignore: open},
		{name: "C10 status 201", answer: status(201, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":true}}`), fail: allow, ignore: allow},
		{name: "C10 status 201, a denial", answer: status(201, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":false,"status":{"code":403}}}`), fail: deny, ignore: deny},
		{name: "C9 trailing bytes, a denial", answer: raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":false}}x`), fail: d500, ignore: d500},
		{name: "C12 a denial over the limit", answer: raw(`{"response":{"allowed":false},"x":"` + strings.Repeat("x", 300_000) + `"}`), fail: d500, ignore: d500},
		{name: "C11 status 204", answer: status(204, ""), fail: d500, ignore: open},
		{name: "C11 empty 200", answer: status(200, ""), fail: d500, ignore: open},
		{name: "C11 status 404 with a denial", answer: status(404, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":false}}`), fail: d500, ignore: open},
		{name: "C11 status 503 with an allow", answer: status(503, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID","allowed":true}}`), fail: d500, ignore: open},
		{name: "C12 body over the limit", answer: raw(`{"x":"` + strings.Repeat("x", 300_000) + `"}`), fail: d500, ignore: open},
		{name: "C13 validating with a patch, allow", answer: says(patch(ops) + `,"allowed":true`), fail: d500, ignore: open},
		{name: "C13 validating with a patch, deny", answer: says(patch(ops) + `,"allowed":false`), fail: d500, ignore: d500},
		{name: "C21 deny with code 200", answer: says(`"allowed":false,"status":{"code":200}`), fail: "deny 400", ignore: "deny 400"},
		{name: "C21 deny with code 600", answer: says(`"allowed":false,"status":{"code":600}`), fail: "deny 400", ignore: "deny 400"},
		{name: "C23 message of 1 MiB with newlines", answer: says(`"allowed":false,"status":{"code":403,"message":"a\nb` + strings.Repeat("x", 20_000) + `"}`), fail: deny, ignore: deny,
			check: func(t *testing.T, got response) {
				if n := len([]rune(got.Status.Message)); n > 4096+100 || !strings.Contains(got.Status.Message, "a\n  b") {
					t.Errorf("the message has %d runes", n)
				}
			}},
		{name: "C24 1,000 warnings", answer: says(`"allowed":true,"warnings":` + numbered(1000)), fail: allow, ignore: allow,
			check: func(t *testing.T, got response) {
				if len(got.Warnings) != 16 {
					t.Errorf("%d warnings", len(got.Warnings))
				}
			}},
		{name: "C25 bad annotation keys", answer: says(`"allowed":true,"auditAnnotations":{"good":"1","bad/key":"2","dispatcher.dev.bypass":"3"}`), fail: allow, ignore: allow,
			check: func(t *testing.T, got response) {
				for key := range got.AuditAnnotations {
					if strings.Contains(key, "/") || len(key) > 63 || key == "dispatcher.dev.bypass" {
						t.Errorf("annotation %q", key)
					}
				}
				if got.AuditAnnotations["dispatcher.dev.dropped-annotations"] != "2" {
					t.Errorf("annotations are %v", got.AuditAnnotations)
				}
			}},
	}
	return append(rows, patchRows(ops)...)
}

// patchRows are the rows of mutating webhooks.
func patchRows(ops string) []answerRow {
	rows := []answerRow{
		{name: "C14 patch without type", answer: says(`"allowed":true,"patch":"` + b64(ops) + `"`), fail: d500, ignore: open},
		{name: "C14 type without patch", answer: says(`"allowed":true,"patchType":"JSONPatch"`), fail: d500, ignore: open},
		{name: "C14 other patch type", answer: says(`"allowed":true,"patch":"` + b64(ops) + `","patchType":"MergePatch"`), fail: d500, ignore: open},
		{name: "C14 not base64", answer: says(`"allowed":true,"patch":"%","patchType":"JSONPatch"`), fail: d500, ignore: open},
		{name: "C14 not decodable", answer: says(patch(`{"op":"add"`) + `,"allowed":true`), fail: d500, ignore: open},
		{name: "C15 empty patch", answer: says(patch(`[]`) + `,"allowed":true`), fail: allow, ignore: allow},
		{name: "C15 null patch", answer: says(patch(`null`) + `,"allowed":true`), fail: allow, ignore: allow},
		{name: "C16 patch on DELETE", operation: "DELETE", answer: says(patch(ops) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C17 patch that does not apply", answer: says(patch(`[{"op":"remove","path":"/nope"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C17 failed test", answer: says(patch(`[{"op":"test","path":"/metadata/name","value":"q"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C17 unknown op", answer: says(patch(`[{"op":"frob","path":"/metadata/name"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C18 changes the namespace", answer: says(patch(`[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C18 changes the kind", answer: says(patch(`[{"op":"replace","path":"/kind","value":"Node"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C18 a non-object", answer: says(patch(`[{"op":"replace","path":"","value":1}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C19 too many operations", answer: says(patch(`[`+strings.Repeat(`{"op":"test","path":"/kind","value":"Pod"},`, 2000)+`{"op":"test","path":"/kind","value":"Pod"}]`) + `,"allowed":true`), fail: d500, ignore: d500},
		{name: "C20 deny with a patch", answer: says(patch(ops) + `,"allowed":false,"status":{"code":403}`), fail: deny, ignore: deny},
		{name: "C1 valid patch", answer: says(patch(ops) + `,"allowed":true`), fail: allow, ignore: allow,
			check: func(t *testing.T, got response) {
				if diff := cmp.Diff(ops, string(got.Patch)); diff != "" || got.PatchType != "JSONPatch" {
					t.Errorf("patch of type %q (-want +got):\n%s", got.PatchType, diff)
				}
			}},
	}
	for i := range rows {
		rows[i].phase = "mutate"
	}
	return rows
}

func says(members string) func(http.ResponseWriter, string) {
	return raw(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$UID",` + members + `}}`)
}

func raw(body string) func(http.ResponseWriter, string) { return status(http.StatusOK, body) }

func status(code int, body string) func(http.ResponseWriter, string) {
	return func(rw http.ResponseWriter, uid string) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(code)
		_, _ = io.WriteString(rw, strings.ReplaceAll(body, "$UID", uid))
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func patch(ops string) string { return `"patch":"` + b64(ops) + `","patchType":"JSONPatch"` }

// response is what the caller gets.
type response struct {
	Allowed bool
	Status  struct {
		Code    int
		Message string
	}
	Patch            []byte
	PatchType        string
	Warnings         []string
	AuditAnnotations map[string]string
}

// verdict writes the response as docs/contract.md does. A denial of ours names a cause
// in details; a webhook's own says so.
func (r *response) verdict(policy string) string {
	name := policy + ".example.com"
	visible := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, name) }) &&
		strings.Contains(r.AuditAnnotations["dispatcher.dev.failed-open"], name)
	switch {
	case r.Allowed && visible:
		return open
	case r.Allowed:
		return allow
	case strings.Contains(r.Status.Message, `admission webhook "`+name+`" denied the request`):
		return fmt.Sprintf("deny %d", r.Status.Code)
	}
	return fmt.Sprintf("D%d", r.Status.Code)
}

// askAs sends a review for a pod in the namespace that stands for a policy.
func askAs(t *testing.T, c *http.Client, phase, policy, operation string) response {
	t.Helper()
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":%q}}`, policy)
	objects := `"object":` + object + `,"oldObject":null`
	if operation == "DELETE" {
		objects = `"object":null,"oldObject":` + object
	} else {
		operation = "CREATE"
	}
	if phase == "" {
		phase = "validate"
	}
	review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",`+
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},`+
		`"name":"p","namespace":%q,"operation":%q,"userInfo":{"username":"ann"},%s}}`, policy, operation, objects)
	resp, err := c.Post("https://127.0.0.1/v1/clusters/east/"+phase+"?timeout=10s", "application/json", strings.NewReader(review)) //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct{ Response response }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP status %d, %v", resp.StatusCode, err)
	}
	return got.Response
}
