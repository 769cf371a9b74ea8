// SPDX-License-Identifier: Apache-2.0

// Package otlp is the way to a collector, for metrics and for spans: what the
// OTEL_* variables ask for, and what is logged of it without a credential.
package otlp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Scope is the instrumentation scope of the process's metrics and spans.
const Scope = "github.com/admission-dispatcher/dispatcher"

// FlushTimeout bounds how long a process that ends waits for its collector.
const FlushTimeout = 3 * time.Second

// Environment looks up a variable, as os.Getenv does. Those that are not read
// here the SDK and its exporters read by themselves.
type Environment func(name string) string

// first returns the first of the variables that is set.
func (e Environment) first(names ...string) string {
	for _, name := range names {
		if value := strings.TrimSpace(e(name)); value != "" {
			return value
		}
	}
	return ""
}

// all returns the values of the variables that are set.
func (e Environment) all(names []string) (values []string) {
	for _, name := range names {
		if value := e.first(name); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// Disabled reports whether nothing at all is to be recorded, pushed or traced.
func (e Environment) Disabled() bool { return strings.EqualFold(e.first("OTEL_SDK_DISABLED"), "true") }

// The signals, as variables spell them.
const (
	tracesSignal  = "TRACES"
	metricsSignal = "METRICS"
)

// isGRPC reports whether a signal goes out over gRPC, or else over HTTP.
func (e Environment) isGRPC(signal string) bool {
	return e.first("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc"
}

// ParentDecides reports whether the sampler does as the caller's traceparent says.
func (e Environment) ParentDecides() bool {
	sampler := strings.ToLower(e.first("OTEL_TRACES_SAMPLER"))
	return sampler == "" || strings.HasPrefix(sampler, "parentbased_")
}

// defaultQueue is what the specification says.
const defaultQueue = 2048

// QueueSize returns how many spans may wait.
func (e Environment) QueueSize() int {
	if n, err := strconv.Atoi(e.first("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return defaultQueue
}

// SpanExporter returns the exporter of spans that the variables ask for, nil if
// none.
func (e Environment) SpanExporter() (trace.SpanExporter, error) {
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

// MetricExporter returns the exporter that metrics are pushed with, nil if they
// are only scraped.
func (e Environment) MetricExporter() (metric.Exporter, error) {
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

// Resource is the resource that all signals belong to; OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES go on top.
func Resource(version string) (*resource.Resource, error) {
	r, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(
			attribute.String("service.name", "admission-dispatcher"),
			attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the process to collectors: %w", err)
	}
	return r, nil
}
