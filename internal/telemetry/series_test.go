// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/telemetry"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// fleet is clusters that share webhooks.
type fleet struct {
	clusters []*registry.Cluster
	webhooks []*registry.Webhook
}

func newFleet(clusters, webhooks int) fleet {
	var f fleet
	for i := range clusters {
		f.clusters = append(f.clusters, &registry.Cluster{Name: fmt.Sprintf("cluster-%03d", i)})
	}
	for i := range webhooks {
		f.webhooks = append(f.webhooks, &registry.Webhook{Configuration: fmt.Sprintf("policies-%02d", i/10), Name: fmt.Sprintf("w%03d.example.com", i)})
	}
	return f
}

// record is an admission in which every given webhook came to r.
func (f fleet) record(c *registry.Cluster, webhooks []*registry.Webhook, r dispatcher.Result, cause webhook.Cause) *dispatcher.Record {
	v := &dispatcher.Verdict{Response: codec.Response{Allowed: r == dispatcher.Allowed || r == dispatcher.FailedOpen}}
	for i, w := range webhooks {
		v.Outcomes = append(v.Outcomes, dispatcher.Outcome{Webhook: w, Position: i, Result: r, Cause: cause, Elapsed: time.Millisecond, Err: errorOf(cause)})
	}
	return &dispatcher.Record{
		Request: dispatcher.Request{Cluster: c, Phase: registry.Validating, Snapshot: "one", Deadline: time.Now().Add(time.Second), Review: &codec.Review{}},
		Verdict: v, Start: time.Now(), Elapsed: time.Millisecond,
	}
}

func errorOf(cause webhook.Cause) error {
	if cause == "" {
		return nil
	}
	return errors.New("no answer")
}

// TestSeries walks 100 clusters and 200 webhooks, first well, then with every
// webhook failing open everywhere in two ways: 40,000 combinations of cluster,
// webhook and cause. The number of series stays bounded, visibly, and no count is
// lost.
func TestSeries(t *testing.T) {
	f, m := newFleet(100, 200), newMetrics(t)
	walk := func(r dispatcher.Result, cause webhook.Cause) {
		for _, c := range f.clusters {
			m.Observe(context.Background(), f.record(c, f.webhooks, r, cause))
		}
		for _, w := range f.webhooks {
			for _, kind := range []webhook.Kind{webhook.First, webhook.Retry, webhook.Hedge} {
				m.Attempted(context.Background(), webhook.Attempt{Owner: w, Kind: kind})
			}
		}
	}
	walk(dispatcher.Allowed, "")
	walk(dispatcher.Denied, "")
	well := samples(scrape(t, m))
	if n := sum(well); n > 12_000 {
		t.Errorf("%d series where all is well", n)
	}
	walk(dispatcher.FailedOpen, webhook.Timeout)
	walk(dispatcher.FailedOpen, webhook.Unreachable)
	text := scrape(t, m)
	worst := samples(text)
	if n := worst["dispatcher_fail_open_total"]; n != 10_000 {
		t.Errorf("%d series of fail_open", n)
	}
	if !strings.Contains(text, `dispatcher_fail_open_total{otel_metric_overflow="true"} 30001`) {
		t.Error("the overflow does not have the rest")
	}
	t.Logf("100 clusters, 200 webhooks: %d series where all is well, %d where everything fails open", sum(well), sum(worst))
}

func newMetrics(t testing.TB) *telemetry.Metrics {
	t.Helper()
	m, err := telemetry.NewMetrics(telemetry.MetricsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// samples counts the series of our own by their names.
func samples(text string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, "{"); ok && strings.HasPrefix(name, "dispatcher_") {
			counts[name]++
		}
	}
	return counts
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
