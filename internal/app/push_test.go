// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	metricsproto "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

// TestMetricsArePushed has a collector receive what a scraper reads: what is
// recorded, what is as of now, and what Go and the system know of the process.
func TestMetricsArePushed(t *testing.T) {
	for _, protocol := range []string{overHTTP, overGRPC} {
		t.Run(protocol, func(t *testing.T) {
			receiver, w := newReceiver(t, protocol), newWorld(t)
			t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
			t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
			p := w.start("lameDuck: 0s\n")
			if _, err := ask(w.clientOf(p.awaitReady())); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the admission is pushed", func() bool { return family(receiver.pushed(), "dispatcher.requests") != nil })
			scraped := p.scrape()
			p.end()
			checkPush(t, receiver.pushed(), scraped)
		})
	}
}

// checkPush looks for every family that a scraper finds, and for whose they are.
func checkPush(t *testing.T, got *metricsproto.ResourceMetrics, scraped string) {
	t.Helper()
	for _, f := range metrics.Families() {
		wanted := strings.Contains(scraped, "# TYPE "+strings.TrimSuffix(f.Prometheus(), "_total")+" ")
		if pushed := family(got, f.Name) != nil; wanted != pushed {
			t.Errorf("%s: scraped is %t, pushed is %t", f.Name, wanted, pushed)
		}
	}
	for _, name := range []string{"go_goroutines", "process_open_fds"} {
		if family(got, name) == nil {
			t.Errorf("no %s", name)
		}
	}
	described := got.GetResource().String()
	for _, want := range []string{"admission-dispatcher", "service.version", "host.name"} {
		if !strings.Contains(described, want) {
			t.Errorf("no %s in the resource %s", want, described)
		}
	}
}

// family returns one family of a push.
func family(of *metricsproto.ResourceMetrics, name string) *metricsproto.Metric {
	for _, scope := range of.GetScopeMetrics() {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m
			}
		}
	}
	return nil
}

// TestTelemetryDisabled has nothing recorded, traced or pushed, whatever else the
// environment says; what is read as of now is still there.
func TestTelemetryDisabled(t *testing.T) {
	receiver, w := newReceiver(t, overHTTP), newWorld(t)
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())
	askTraced(t, c, sampled)
	if told := w.headersOf(func() { askTraced(t, c, sampled) }).Get("Traceparent"); told != sampled {
		t.Errorf("the webhook was told %q", told)
	}
	scraped := p.scrape()
	p.end()
	for _, f := range metrics.Families() {
		recorded := f.Kind == metrics.Counter || f.Kind == metrics.Histogram
		if recorded && strings.Contains(scraped, f.Prometheus()) {
			t.Errorf("%s is recorded", f.Name)
		}
	}
	for _, want := range []string{"dispatcher_build_info", "dispatcher_connections 1.0", "go_goroutines", "process_open_fds"} {
		if !strings.Contains(scraped, want) {
			t.Errorf("no %s", want)
		}
	}
	if got := receiver.text(); got != "" {
		t.Errorf("the collector has received %s", got)
	}
}
