// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/telemetry"
)

// Every line is one record, whatever is in it, and says which trace it belongs to.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	l := telemetry.NewLog(&out, slog.LevelInfo)
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	const nasty = "a\nb\r\x1b[31m\u2028\u2029\x85\x00"
	telemetry.WithTrace(l.Logger).With("k", "v").LogAttrs(ctx, slog.LevelInfo, "admission denied", slog.String("user", nasty))
	l.Close()
	line := out.String()
	if strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r\x1b\u2028\u2029\x00") {
		t.Errorf("the line is %q", line)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if got["trace_id"] != "01000000000000000000000000000000" || got["span_id"] != "0200000000000000" || !strings.HasPrefix(got["user"], "a\nb\r\x1b[31m") {
		t.Errorf("the line says %v", got)
	}
}

// F31: a sink that takes nothing holds up nobody, and what is lost is counted.
func TestLogNeverBlocks(t *testing.T) {
	sink := blockedSink{release: make(chan struct{})}
	l := telemetry.NewLog(sink, slog.LevelInfo)
	for range 5000 {
		l.Info("line")
	}
	if n := l.Dropped(); n < 5000-4096-1 || n > 5000-4096 {
		t.Errorf("%d dropped", n)
	}
	close(sink.release)
	l.Close()
}
