// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
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
	wanted, err := e.wantsSpans()
	if !wanted || err != nil {
		return nil, err
	}
	grpc, err := e.isGRPC(tracesSignal)
	switch {
	case err != nil:
		return nil, err
	case grpc:
		return otlptracegrpc.New(context.Background())
	}
	return otlptracehttp.New(context.Background())
}

func (e Environment) wantsSpans() (bool, error) {
	switch wanted := e.first("OTEL_TRACES_EXPORTER"); {
	case e.Disabled(), wanted == "none":
		return false, nil
	case wanted == "":
		return e.first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
	case wanted != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: must be otlp or none", wanted)
	}
	return true, nil
}

// metricExporter returns the exporter that metrics are pushed with, nil if they
// are only scraped.
func (e Environment) metricExporter() (metric.Exporter, error) {
	wanted, err := e.wantsPushes()
	if !wanted || err != nil {
		return nil, err
	}
	grpc, err := e.isGRPC(metricsSignal)
	switch {
	case err != nil:
		return nil, err
	case grpc:
		return otlpmetricgrpc.New(context.Background())
	}
	return otlpmetrichttp.New(context.Background())
}

// wantsPushes differs from wantsSpans: an endpoint for every signal does not ask
// for a push. It may be there for traces only, and metrics can be scraped.
func (e Environment) wantsPushes() (bool, error) {
	wanted := e.first("OTEL_METRICS_EXPORTER")
	if e.Disabled() {
		return false, nil
	}
	if wanted == "" {
		return e.first("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != "", nil
	}
	pushed := false
	for name := range strings.SplitSeq(wanted, ",") {
		switch strings.TrimSpace(name) {
		case "otlp":
			pushed = true
		case "none", "prometheus": // the metrics endpoint is there in any case
		default:
			return false, fmt.Errorf("OTEL_METRICS_EXPORTER is %q: must be of otlp, prometheus and none", wanted)
		}
	}
	return pushed, nil
}
