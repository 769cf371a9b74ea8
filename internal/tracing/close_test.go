// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"
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
		tracing, err := New(Config{
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

// An exporter itself ends, too, when its collector takes nothing.
func TestCloseWithACollectorThatHangs(t *testing.T) {
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // and never accept
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hanging.Close() }()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hanging.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000") // nobody waits for that
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
	tracing, err := New(Config{Environment: os.Getenv, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.tracer.Start(t.Context(), "span")
	span.End()
	tracing.Close()
	goleak.VerifyNone(t)
}
