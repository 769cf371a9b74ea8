// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// stuck is an exporter that tries until it is shut down.
type stuck struct {
	over chan struct{}
	once sync.Once
}

func (s *stuck) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	<-s.over
	return nil
}

func (s *stuck) Shutdown(context.Context) error {
	s.once.Do(func() { close(s.over) })
	return nil
}

// Nothing runs any more when Close has returned, whatever the collector does: a
// bubble of synctest waits for all its goroutines.
func TestCloseEndsAnExporterThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracing, err := NewTracing(TracingConfig{
			Environment: func(string) string { return "" },
			Exporter:    &stuck{over: make(chan struct{})},
			Logger:      slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, span := tracing.tracer.Start(t.Context(), "span")
		span.End()
		tracing.Close()
	})
}
