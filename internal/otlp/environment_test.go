// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTheEnvironmentAsksFor(t *testing.T) {
	type asked struct{ Spans, Pushes bool }
	for name, test := range map[string]struct {
		variables map[string]string
		want      asked
	}{
		"nothing":                    {nil, asked{}},
		"an endpoint":                {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, asked{Spans: true}},
		"an endpoint for spans":      {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, asked{Spans: true}},
		"an endpoint for metrics":    {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}, asked{Pushes: true}},
		"an endpoint that is not to": {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, asked{}},
		"exporters":                  {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "prometheus, otlp"}, asked{Spans: true, Pushes: true}},
		"a scraper":                  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "prometheus"}, asked{Spans: true}},
		"no spans":                   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, asked{}},
		"nothing at all": {map[string]string{
			"OTEL_SDK_DISABLED": "True", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp",
		}, asked{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Environment(func(name string) string { return test.variables[name] })
			if diff := cmp.Diff(test.want, asked{e.wantsSpans(), e.wantsPushes()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProtocol(t *testing.T) {
	for value, want := range map[string]bool{"": false, "http/protobuf": false, "grpc": true} {
		e := environmentOf("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=" + value)
		if got := e.isGRPC(metricsSignal); got != want {
			t.Errorf("%q: %t", value, got)
		}
		if e.isGRPC(tracesSignal) {
			t.Errorf("%q is not for spans", value)
		}
	}
}
