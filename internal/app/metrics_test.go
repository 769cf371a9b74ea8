// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

// scrape returns the metrics as OpenMetrics text.
func (p *process) scrape() string {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+p.app.AdminAddress().String()+"/metrics", nil) //nolint:noctx // bounded by the test
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}

// TestMetrics scrapes a process that has allowed, denied and failed: the values
// are there, and the families are those of the page.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())
	for _, members := range []string{`"allowed":true`, `"allowed":true`, `"allowed":false`, `nonsense`} {
		w.says(members)
		if _, err := ask(c); err != nil {
			t.Fatal(err)
		}
	}
	got := p.scrape()
	for _, want := range []string{
		`dispatcher_requests_total{cluster="east",decision="allowed",phase="validate"} 2.0`,
		`dispatcher_requests_total{cluster="east",decision="denied",phase="validate"} 1.0`,
		`dispatcher_requests_total{cluster="east",decision="failed",phase="validate"} 1.0`,
		`dispatcher_request_duration_seconds_count{cluster="east",decision="allowed",phase="validate"} 2`,
		`dispatcher_deadline_left_seconds_count{phase="validate"} 4`,
		`dispatcher_webhook_calls_total{configuration="policy",outcome="allowed",phase="validate",webhook="policy.example.com"} 2.0`,
		`dispatcher_webhook_errors_total{cause="BadAnswer",configuration="policy",phase="validate",webhook="policy.example.com"} 1.0`,
		`dispatcher_webhook_attempts_total{configuration="policy",kind="first",webhook="policy.example.com"} 4.0`,
		`dispatcher_config_reloads_total{result="success"} 1.0`,
		`dispatcher_connections 1.0`,
		`dispatcher_build_info{goversion="` + runtime.Version() + `",revision="`,
		`,version="test"} 1.0`,
		`dispatcher_breaker_state{endpoint="` + strings.TrimPrefix(w.webhook.URL, "https://") + `",target="` + w.webhook.URL + `/policy"} 0.0`,
		`dispatcher_endpoints{state="closed",target="` + w.webhook.URL + `/policy"} 1.0`,
		`dispatcher_webhook_info{configuration="policy",phase="validate",target="` + w.webhook.URL + `/policy",webhook="policy.example.com"} 1.0`,
		`dispatcher_certificate_expiry_timestamp_seconds{role="serving"}`,
		`dispatcher_certificate_expiry_timestamp_seconds{role="client_ca"}`,
		"go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	known := map[string]metrics.Family{}
	for _, f := range metrics.Families() {
		known[f.Prometheus()] = f
	}
	for line := range strings.Lines(got) {
		words := strings.Fields(line)
		if len(words) < 4 || words[1] != "TYPE" || !strings.HasPrefix(words[2], "dispatcher_") {
			continue
		}
		name, kind := words[2], words[3]
		if kind == "counter" {
			name += "_total"
		}
		if f, ok := known[name]; !ok || f.Kind.Type() != kind {
			t.Errorf("%s is no family of the page", strings.TrimSpace(line))
		}
	}
}

// TestCircuitsOfClustersAreMeasured has a cluster's reviews make a webhook fail: a
// circuit of its own opens, and not that of the endpoint.
func TestCircuitsOfClustersAreMeasured(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\nlog: {level: error}\n")
	c := w.clientOf(p.awaitReady())
	address := strings.TrimPrefix(w.webhook.URL, "https://")
	series := func(family, value string) string {
		return family + `{endpoint="` + address + `",target="` + w.webhook.URL + `/policy"} ` + value + "\n"
	}
	for _, step := range []struct{ members, clusters string }{{`"allowed":true`, "0.0"}, {`nonsense`, "1.0"}} {
		w.says(step.members)
		for range 30 {
			if _, err := ask(c); err != nil {
				t.Fatal(err)
			}
		}
		got := p.scrape()
		for _, want := range []string{series("dispatcher_breaker_clusters", step.clusters), series("dispatcher_breaker_state", "0.0")} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", step.members, want, got)
			}
		}
	}
}
