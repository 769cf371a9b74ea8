// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// scope is the instrumentation scope of metrics and spans of this package.
const scope = "github.com/admission-dispatcher/dispatcher"

// Metrics counts what happens: it is a dispatcher.Observer and a
// webhook.Observer. It is safe for concurrent use.
type Metrics struct {
	meter    metric.Meter
	registry *prometheus.Registry
	sets     *sets
	phases   [phases]attrs

	requests, shed, bypasses, failOpen                     metric.Int64Counter
	calls, errors, attempts, refused, disagreed, operation metric.Int64Counter
	duration, left, call                                   metric.Float64Histogram
}

// NewMetrics returns Metrics that count into a registry of their own.
func NewMetrics() (*Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(maxSeries))
	m := &Metrics{meter: provider.Meter(scope), registry: registry, sets: newSets(), phases: byPhase()}
	return m, m.instrument()
}

// instrument makes the instruments of the families that are recorded.
func (m *Metrics) instrument() error {
	counters := map[string]*metric.Int64Counter{
		requests: &m.requests, shed: &m.shed, bypasses: &m.bypasses, failOpen: &m.failOpen,
		webhookCalls: &m.calls, webhookErrors: &m.errors, webhookAttempts: &m.attempts,
		webhookRefused: &m.refused, webhookDisagreed: &m.disagreed, webhookOperations: &m.operation,
	}
	histograms := map[string]*metric.Float64Histogram{
		requestDuration: &m.duration, deadlineLeft: &m.left, webhookDuration: &m.call,
	}
	for _, f := range Families() {
		var err error
		switch f.Kind {
		case Counter:
			*counters[f.Name], err = m.meter.Int64Counter(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help))
		case Histogram:
			*histograms[f.Name], err = m.meter.Float64Histogram(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help),
				metric.WithExplicitBucketBoundaries(buckets()...))
		}
		if err != nil {
			return fmt.Errorf("metric %s: %w", f.Name, err)
		}
	}
	return nil
}

// Handler serves the metrics as Prometheus and OpenMetrics text.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
