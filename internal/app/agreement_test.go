// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	report "github.com/admission-dispatcher/dispatcher/internal/status"
)

// agreement is what metrics, status, log and decision log must agree on.
type agreement struct {
	*world
	*process
	client *http.Client
}

func newAgreement(t *testing.T, mode string) agreement {
	t.Helper()
	w := newWorld(t)
	w.write("registry/binding.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: tried}\nspec: {webhooks: [\"policy/*\"], mode: "+mode+"}\n"))
	p := w.start("lameDuck: 0s\ntelemetry: {decisionLog: {file: decisions, allows: true}}\n")
	return agreement{w, p, w.clientOf(p.awaitReady())}
}

// post sends a body to a path, with a trace, and returns status and body.
func (a *agreement) post(path, body string) (int, string) {
	a.world.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1"+path, strings.NewReader(body)) //nolint:noctx // bounded by the test
	if err != nil {
		a.world.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", sampled)
	resp, err := a.client.Do(req)
	if err != nil {
		a.world.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.world.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// has wants these series, with these values.
func (a *agreement) has(series ...string) {
	a.world.t.Helper()
	text := a.scrape()
	for _, want := range series {
		if !strings.Contains(text, "\n"+want+"\n") && !strings.Contains(text, "\n"+want+" # ") { // an exemplar
			a.world.t.Errorf("no %s", want)
		}
	}
}

// lacks wants no series with these beginnings.
func (a *agreement) lacks(series ...string) {
	a.world.t.Helper()
	text := a.scrape()
	for _, unwanted := range series {
		if strings.Contains(text, "\n"+unwanted) {
			a.world.t.Errorf("there is %s", unwanted)
		}
	}
}

func (a *agreement) report() report.Status {
	a.world.t.Helper()
	s, err := a.status(http.DefaultClient)
	if err != nil {
		a.world.t.Fatal(err)
	}
	return s
}

// line returns the log line with this message.
func (a *agreement) line(message string) map[string]any {
	a.world.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for text := range strings.Lines(a.logs.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			a.world.t.Fatal(err)
		}
		if line["msg"] == message {
			return line
		}
	}
	a.world.t.Errorf("no line %q", message)
	return nil
}

// decided ends the process and returns the decision log.
func (a *agreement) decided() string {
	a.world.t.Helper()
	a.process.end()
	text, err := os.ReadFile(filepath.Join(a.dir, "decisions"))
	if err != nil {
		a.world.t.Fatal(err)
	}
	return string(text)
}

// A webhook in mode Warn that is down blocks nobody, and everybody says so: it has
// failed open, and is not said to fail closed.
func TestWarnThatFailsIsAFailOpen(t *testing.T) {
	a := newAgreement(t, "Warn")
	a.world.answers(status(http.StatusInternalServerError, "no"))
	if v, err := ask(a.client); err != nil || !v.allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	a.has(`dispatcher_fail_open_total{cause="HTTPStatus",cluster="east",configuration="policy",webhook="policy.example.com"} 1.0`,
		`dispatcher_requests_total{cluster="east",decision="failed_open",phase="validate"} 1.0`,
		`dispatcher_webhook_calls_total{configuration="policy",outcome="failed_open",phase="validate",webhook="policy.example.com"} 1.0`)
	a.lacks(`dispatcher_webhook_calls_total{configuration="policy",outcome="failed",`)
	if s := a.report(); s.Clusters[0].Counts.FailedOpen != 1 || len(s.FailOpens) != 1 {
		t.Errorf("the status has %+v and %d fail-opens", s.Clusters[0].Counts, len(s.FailOpens))
	}
	if l := a.line("webhook failed_open"); l["level"] != "WARN" || l["mode"] != "Warn" {
		t.Errorf("the line is %v", l)
	}
	if text := a.decided(); !strings.Contains(text, `"decision":"failed_open"`) || !strings.Contains(text, `"outcome":"failed_open"`) {
		t.Errorf("the decision log says %s", text)
	}
}

// A denial in mode Warn is neither an allow nor a denial.
func TestWarnThatDeniesIsSoftened(t *testing.T) {
	a := newAgreement(t, "Warn")
	a.world.says(`"allowed":false`)
	if v, err := ask(a.client); err != nil || !v.allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	a.has(`dispatcher_requests_total{cluster="east",decision="allowed",phase="validate"} 1.0`,
		`dispatcher_webhook_calls_total{configuration="policy",outcome="softened",phase="validate",webhook="policy.example.com"} 1.0`)
	a.lacks("dispatcher_fail_open_total{", `dispatcher_webhook_calls_total{configuration="policy",outcome="denied",`)
	if c := a.report().Clusters[0].Counts; c.Denied != 0 || c.FailedOpen != 0 {
		t.Errorf("the status has %+v", c)
	}
}

// What Shadow would have denied is counted, and only there.
func TestShadowIsCounted(t *testing.T) {
	a := newAgreement(t, "Shadow")
	a.world.says(`"allowed":false`)
	if v, err := ask(a.client); err != nil || !v.allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	eventually(t, "the Shadow call is over", func() bool { return a.logged("shadow webhook answered") })
	eventually(t, "it is counted", func() bool {
		return strings.Contains(a.scrape(), `dispatcher_shadow_total{configuration="policy",outcome="denied",phase="validate",webhook="policy.example.com"} 1.0`)
	})
	a.lacks("dispatcher_webhook_calls_total{")
	if s := a.report().Webhooks[0].Shadow; s == nil || *s != (report.ShadowCounts{Denied: 1}) {
		t.Errorf("the status has %+v", s)
	}
}

// A review that cannot be judged is a denial like any other.
func TestUnreadableIsADenial(t *testing.T) {
	a := newAgreement(t, "Enforce")
	code, answer := a.post("/v1/clusters/east/validate?timeout=10s", strings.Replace(podReview, "CREATE", "READ", 1))
	if code != http.StatusOK || !strings.Contains(answer, `"allowed":false`) {
		t.Fatalf("%d %s", code, answer)
	}
	a.has(`dispatcher_requests_total{cluster="east",decision="unreadable",phase="validate"} 1.0`)
	s := a.report()
	if s.Clusters[0].Counts.Denied != 1 || len(s.Denials) != 1 || s.Denials[0].Decision != "unreadable" || s.Denials[0].UID != "u-1" {
		t.Errorf("the status has %+v", s.Denials)
	}
	l := a.line("admission denied")
	got := []any{l["cluster"], l["uid"], l["trace_id"], l["decision"]}
	if diff := cmp.Diff([]any{"east", "u-1", sampledTrace, "unreadable"}, got); diff != "" {
		t.Errorf("the line (-want +got):\n%s", diff)
	}
	if text := a.decided(); !strings.Contains(text, `"decision":"unreadable"`) || !strings.Contains(text, sampledTrace) {
		t.Errorf("the decision log says %s", text)
	}
}

// A call that is turned away is counted for who made it.
func TestTurnedAwayIsCounted(t *testing.T) {
	a := newAgreement(t, "Enforce")
	if code, _ := a.post("/v1/clusters/west/validate", podReview); code != http.StatusForbidden {
		t.Errorf("status %d", code)
	}
	if code, _ := a.post("/validate", podReview); code != http.StatusNotFound {
		t.Errorf("status %d", code)
	}
	a.has(`dispatcher_refusals_total{cluster="east",reason="forbidden"} 1.0`,
		`dispatcher_refusals_total{cluster="east",reason="no_route"} 1.0`,
		`dispatcher_connections_limit 4096.0`,
		`dispatcher_requests_in_flight_limit{scope="all"} 1024.0`,
		`dispatcher_requests_in_flight_limit{scope="cluster"} 512.0`)
	a.lacks("dispatcher_requests_total{")
}

// The decision log says who was not called, and why.
func TestDecisionLogHasSkips(t *testing.T) {
	w := newWorld(t)
	w.configureMore("policy", "  objectSelector: {matchLabels: {tried: \"yes\"}}\n")
	p := w.start("lameDuck: 0s\ntelemetry: {decisionLog: {file: decisions, allows: true}}\n")
	a := agreement{w, p, w.clientOf(p.awaitReady())}
	if v, err := ask(a.client); err != nil || !v.allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	if text := a.decided(); !strings.Contains(text, `"skipped":[{"configuration":"policy","webhook":"policy.example.com","reason":"ObjectSelector"`) {
		t.Errorf("the decision log says %s", text)
	}
}
