// SPDX-License-Identifier: Apache-2.0

// Package tracing puts a span around each admission, and sends spans to a
// collector.
package tracing

import (
	"context"
	"log/slog"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/otlp"
)

// Tracing sends spans to a collector. It is safe for concurrent use.
type Tracing struct {
	provider *sdk.TracerProvider
	exporter sdk.SpanExporter
	tracer   trace.Tracer
	spans    *spanQueue
	// obedient: the sampler does as a parent does that has decided.
	obedient  bool
	userNames bool
}

// Config is the configuration of Tracing.
type Config struct {
	Environment otlp.Environment // the OTEL_* variables
	UserNames   bool             // spans carry the requesting user's name
	Exporter    sdk.SpanExporter // default: OTLP, as the Environment says
	Delay       time.Duration    // of a batch of spans; default: as the Environment says, 5 s
	Version     string           // of the service
	Logger      *slog.Logger     // required
}

// New returns nil where the Environment names no exporter: nothing is
// traced then, and callers' traces pass through. It dials nothing yet. An error
// names the variables that are at fault, not their values.
func New(cfg Config) (*Tracing, error) {
	if err := cfg.Environment.Check(); err != nil {
		return nil, err
	}
	if cfg.Exporter == nil {
		exporter, err := cfg.Environment.SpanExporter()
		if exporter == nil || err != nil {
			return nil, err
		}
		cfg.Exporter = exporter
	}
	described, err := otlp.Resource(cfg.Version)
	if err != nil {
		return nil, err
	}
	t := &Tracing{
		exporter:  cfg.Exporter,
		spans:     newSpanQueue(&cfg),
		obedient:  cfg.Environment.ParentDecides(),
		userNames: cfg.UserNames,
	}
	t.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(t.spans), sdk.WithResource(described))
	t.tracer = t.provider.Tracer(otlp.Scope)
	return t, nil
}

// Dropped returns how many spans were given up.
func (t *Tracing) Dropped() int64 {
	if t == nil {
		return 0
	}
	return t.spans.dropped.Load()
}

// Close sends what is waiting, as far as the collector takes it at once.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), otlp.FlushTimeout)
	defer cancel()
	if t.provider.Shutdown(ctx) != nil { // what it could not send it has said
		cancel()                     // or an exporter over gRPC waits for what it is still trying
		_ = t.exporter.Shutdown(ctx) // ends that
	}
}
