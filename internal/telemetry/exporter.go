// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// spanExporter returns the exporter of spans that the variables ask for, nil if
// none.
func (e Environment) spanExporter() (trace.SpanExporter, error) {
	switch {
	case !e.wantsSpans():
		return nil, nil
	case e.isGRPC(tracesSignal):
		return otlptracegrpc.New(context.Background())
	}
	return otlptracehttp.New(context.Background())
}

func (e Environment) wantsSpans() bool {
	if e.Disabled() {
		return false
	}
	if wanted := e.first("OTEL_TRACES_EXPORTER"); wanted != "" {
		return wanted == "otlp"
	}
	return e.first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// metricExporter returns the exporter that metrics are pushed with, nil if they
// are only scraped.
func (e Environment) metricExporter() (metric.Exporter, error) {
	switch {
	case !e.wantsPushes():
		return nil, nil
	case e.isGRPC(metricsSignal):
		return otlpmetricgrpc.New(context.Background())
	}
	return otlpmetrichttp.New(context.Background())
}

// wantsPushes differs from wantsSpans: an endpoint for every signal does not ask
// for a push. It may be there for traces only, and metrics can be scraped.
func (e Environment) wantsPushes() bool {
	if e.Disabled() {
		return false
	}
	if wanted := e.first("OTEL_METRICS_EXPORTER"); wanted != "" {
		return slices.Contains(words(wanted), "otlp") // the metrics endpoint is there in any case
	}
	return e.first("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != ""
}

// words returns what stands between commas.
func words(list string) []string {
	words := strings.Split(list, ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return words
}
