// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// unwilling is an exporter that fails and quotes a credential.
type unwilling struct{}

func (unwilling) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	return errors.New("401 Unauthorized (body: hunter2-hunter2)")
}

func (unwilling) Shutdown(context.Context) error { return nil }

// A collector that is down for long is told of now and then, not with each batch.
func TestDroppedSpansAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := newSpanQueue(&Config{
			Environment: func(name string) string {
				return map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=hunter2-hunter2"}[name]
			},
			Exporter: unwilling{},
			Logger:   slog.New(slog.NewJSONHandler(&out, nil)),
		})
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(q))
		export := func(batches int) {
			for range batches {
				_, span := provider.Tracer("").Start(t.Context(), "span")
				span.End()
				if err := q.ForceFlush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		export(100)
		if n := strings.Count(out.String(), "\n"); n != throttle.Burst {
			t.Errorf("%d lines", n)
		}
		<-time.After(throttle.Window) // of the bubble
		export(1)
		if !strings.Contains(out.String(), `"left_out":95`) || strings.Contains(out.String(), "hunter2") {
			t.Errorf("the log says\n%s", out.String())
		}
		if n := q.dropped.Load(); n != 101 {
			t.Errorf("%d spans counted", n)
		}
		_ = provider.Shutdown(t.Context())
	})
}
