// SPDX-License-Identifier: Apache-2.0

// Package logging is the process's log, which never waits for its sink.
package logging

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// logLines is how many lines may wait for a sink that does not take them.
const logLines = 4096

// Log writes one JSON object per line, and never waits for its sink.
type Log struct {
	*slog.Logger
	queue *Queue
}

// New returns a Log to out, which must not be used otherwise before Close.
func New(out io.Writer, level slog.Level) *Log {
	queue := NewQueue(out, logLines)
	return &Log{slog.New(slog.NewJSONHandler(queue, &slog.HandlerOptions{Level: level})), queue}
}

// Dropped returns how many lines were given up.
func (l *Log) Dropped() int64 { return l.queue.Dropped() }

// Close writes what is waiting, unless the sink is blocked.
func (l *Log) Close() { l.queue.Close() }

// WithTrace returns log with the trace and the span of a line's context in it.
func WithTrace(log *slog.Logger) *slog.Logger { return slog.New(tracedHandler{log.Handler()}) }

// tracedHandler adds trace_id and span_id.
type tracedHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h tracedHandler) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h tracedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h tracedHandler) WithGroup(name string) slog.Handler {
	return tracedHandler{h.Handler.WithGroup(name)}
}
