// SPDX-License-Identifier: Apache-2.0

// Package logging is the process's log, which never waits for its sink.
package logging

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// logLines is how many lines may wait for a sink that does not take them.
const logLines = 4096

// Format is how lines are written.
type Format string

// The formats.
const (
	JSON Format = "json" // one object per line
	Text Format = "text" // for people
)

// Log writes a line for each record, and never waits for its sink.
type Log struct {
	*slog.Logger
	queue      *Queue
	configured slog.Level
	level      *slog.LevelVar
}

// New returns a Log to out in the format JSON, which must not be used otherwise before
// Close.
func New(out io.Writer, level slog.Level) *Log { return NewFormat(out, level, JSON) }

// NewFormat is New in a format.
func NewFormat(out io.Writer, level slog.Level, format Format) *Log {
	if format == Text {
		out = textWriter{out}
	}
	l := &Log{queue: NewQueue(out, logLines), configured: level, level: new(slog.LevelVar)}
	l.level.Set(level)
	l.Logger = slog.New(slog.NewJSONHandler(l.queue, &slog.HandlerOptions{Level: l.level}))
	return l
}

// ToggleDebug lets lines of level DEBUG through, or has the level that was configured
// again, and says so in a line. It may be called at any time.
func (l *Log) ToggleDebug() {
	next := slog.LevelDebug
	if l.level.Level() == slog.LevelDebug && l.configured != slog.LevelDebug {
		next = l.configured
	}
	l.level.Set(min(next, slog.LevelInfo)) // so that the line is written
	l.Info("log level changed", "to", strings.ToLower(next.String()))
	l.level.Set(next)
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
