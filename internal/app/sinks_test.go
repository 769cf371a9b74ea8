// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/app"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
)

// blocked is a sink that takes nothing until it is released.
type blocked chan struct{}

func (b blocked) Write(line []byte) (int, error) {
	<-b
	return len(line), nil
}

// TestSinksThatBlock has the collector hang, and the log's sink take nothing (F31): verdicts are as ever, and what is lost is counted.
func TestSinksThatBlock(t *testing.T) {
	release := make(chan struct{})
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // and never accept
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() }) // after the process has ended, which flushes to it
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hanging.Addr().String())
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", "50")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300") // milliseconds, after which it tries again
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	defer close(release)

	w := newWorld(t)
	sink := logging.New(blocked(release), slog.LevelDebug)
	defer sink.Close()
	p := w.startWith(sink, "lameDuck: 0s\nlog: {level: debug}\n")
	c := w.clientOf(p.awaitReady())
	for range 5000 {
		askTraced(t, c, sampled)
	}
	got := p.scrape()
	for _, signal := range []string{"logs", "spans", "metrics"} {
		if !strings.Contains(got, `dispatcher_telemetry_dropped_total{signal="`+signal+`"} `) ||
			strings.Contains(got, `dispatcher_telemetry_dropped_total{signal="`+signal+`"} 0`) {
			t.Errorf("%s: nothing was dropped", signal)
		}
	}
}

// startWith is start with a Log for the process's log.
func (w *world) startWith(sink *logging.Log, more string) *process {
	w.t.Helper()
	a, err := app.New(w.load(fileConfig+more), app.Options{Version: "test", Logger: sink.Logger, Dropped: sink.Dropped})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(a)
}
