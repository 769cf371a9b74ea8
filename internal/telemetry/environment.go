// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

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

// exporter returns the exporter that the variables ask for, nil if none.
func (e Environment) exporter() (sdk.SpanExporter, error) {
	wanted := e.first("OTEL_TRACES_EXPORTER")
	endpoint := e.first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch {
	case strings.EqualFold(e.first("OTEL_SDK_DISABLED"), "true"), wanted == "none":
		return nil, nil
	case wanted != "" && wanted != "otlp":
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: must be otlp or none", wanted)
	case wanted == "" && endpoint == "":
		return nil, nil
	}
	switch protocol := e.first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "grpc":
		return otlptracegrpc.New(context.Background())
	case "", "http/protobuf":
		return otlptracehttp.New(context.Background())
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: must be grpc or http/protobuf", protocol)
	}
}

// parentDecides reports whether the sampler does as the caller's traceparent says.
func (e Environment) parentDecides() bool {
	sampler := e.first("OTEL_TRACES_SAMPLER")
	return sampler == "" || strings.HasPrefix(sampler, "parentbased_")
}

// defaultQueue is what the specification says.
const defaultQueue = 2048

// queueSize returns how many spans may wait.
func (e Environment) queueSize() int {
	if n, err := strconv.Atoi(e.first("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return defaultQueue
}
