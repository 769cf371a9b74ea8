// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"errors"
	"strings"
	"testing"
)

// hunter2 is in every value that is wrong: no error may say it.
const hunter2 = "hunter2"

func environmentOf(pairs ...string) Environment {
	return func(name string) string {
		for _, pair := range pairs {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for _, pair := range []string{
		"OTEL_TRACES_EXPORTER=hunter2",
		"OTEL_METRICS_EXPORTER=otlp,hunter2",
		"OTEL_METRIC_EXPORT_INTERVAL=hunter2",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=hunter2",
		"OTEL_TRACES_SAMPLER=hunter2",
		"OTEL_TRACES_SAMPLER_ARG=hunter2",
		"OTEL_SDK_DISABLED=hunter2",
		"OTEL_EXPORTER_OTLP_PROTOCOL=hunter2",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/hunter2",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hunter2@%zz",
		"OTEL_EXPORTER_OTLP_ENDPOINT=hunter2:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://hunter2",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=hunter2%ZZ",
		"OTEL_EXPORTER_OTLP_HEADERS=a=b,hunter2",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=a b=hunter2",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=a=hunter2%0Ax",
		"OTEL_EXPORTER_OTLP_LOGS_HEADERS=a=hunter2%ff",
		"OTEL_EXPORTER_OTLP_TIMEOUT=hunter2",
		"OTEL_EXPORTER_OTLP_COMPRESSION=hunter2",
		"OTEL_EXPORTER_OTLP_INSECURE=hunter2",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/hunter2",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/hunter2",
		"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=/hunter2",
		"OTEL_SERVICE_NAME=hunter2\xff",
		"OTEL_RESOURCE_ATTRIBUTES=hunter2",
		"OTEL_RESOURCE_ATTRIBUTES=a=hunter2%Z",
		"OTEL_BSP_MAX_QUEUE_SIZE=-1hunter2",
		"OTEL_BSP_SCHEDULE_DELAY=hunter2",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=hunter2",
	} {
		name, _, _ := strings.Cut(pair, "=")
		err := environmentOf(pair).Check()
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), hunter2) {
			t.Errorf("%q: %v", pair, err)
		}
		if err := environmentOf("OTEL_SDK_DISABLED=true", pair).Check(); err != nil {
			t.Errorf("%q while switched off: %v", pair, err)
		}
	}
}

func TestCheckTakesWhatIsRight(t *testing.T) {
	if err := environmentOf(
		"OTEL_TRACES_EXPORTER=otlp",
		"OTEL_METRICS_EXPORTER=prometheus, otlp",
		"OTEL_TRACES_SAMPLER=ParentBased_TraceIDRatio",
		"OTEL_TRACES_SAMPLER_ARG=0.25",
		"OTEL_SDK_DISABLED=False",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://collector:4318/v1/traces",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b=c, x-tenant = 1,",
		"OTEL_EXPORTER_OTLP_TIMEOUT= 10000 ",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=prod,k8s.pod.name=a%2Cb",
		"OTEL_BSP_MAX_QUEUE_SIZE=16",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT=-1",
	).Check(); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	list := environmentOf("OTEL_EXPORTER_OTLP_HEADERS=x-tenant=1,authorization=Basic%20aHVudGVyMg==").Secrets()
	got := list.Hide(errors.New("status 401 (Basic aHVudGVyMg==, Basic%20aHVudGVyMg==) of 1"))
	if want := "status 401 (***, ***) of 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := list.Hide(errors.New(strings.Repeat("é", 600))); len(got) != maxForeign {
		t.Errorf("%d bytes", len(got))
	}
}
