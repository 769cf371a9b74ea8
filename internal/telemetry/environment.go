// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strconv"
	"strings"
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

// parentDecides reports whether the sampler does as the caller's traceparent says.
func (e Environment) parentDecides() bool {
	sampler := strings.ToLower(e.first("OTEL_TRACES_SAMPLER"))
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
