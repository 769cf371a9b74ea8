// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"google.golang.org/grpc/grpclog"

	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// Redirect makes libraries that write to standard error by themselves write to
// log, in which every line is JSON. It is for the process as a whole and not safe
// for concurrent use: call it once, before anything else runs.
func Redirect(log *slog.Logger, environment Environment) {
	slog.SetDefault(log) // the standard library's log package, too
	otel.SetLogger(logr.FromSlogHandler(foreignHandler{log.Handler()}))
	otel.SetErrorHandler(&foreignErrors{log: log, secrets: environment.Secrets()})
	// What matters of a connection to a collector its exporter says.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// foreignHandler writes OpenTelemetry's own messages without their attributes:
// some have the value of a variable in them, which may be a credential.
type foreignHandler struct{ next slog.Handler }

// Levels of OpenTelemetry's messages as logr hands them on.
const foreignWarn = slog.LevelInfo - 1

func foreignLevel(level slog.Level) slog.Level {
	if level >= foreignWarn {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements slog.Handler.
func (h foreignHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, foreignLevel(level))
}

// Handle implements slog.Handler.
func (h foreignHandler) Handle(ctx context.Context, r slog.Record) error {
	said := slog.NewRecord(r.Time, foreignLevel(r.Level), "opentelemetry", 0)
	said.AddAttrs(slog.String("says", r.Message))
	return h.next.Handle(ctx, said)
}

// WithAttrs implements slog.Handler.
func (h foreignHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler.
func (h foreignHandler) WithGroup(string) slog.Handler { return h }

// foreignErrors is told of OpenTelemetry's errors.
type foreignErrors struct {
	log     *slog.Logger
	secrets Secrets
	said    throttle.Throttle
}

// Handle implements otel.ErrorHandler.
func (e *foreignErrors) Handle(err error) {
	if leftOut, ok := e.said.Pass(time.Now()); ok {
		e.log.Warn("opentelemetry", "error", e.secrets.Hide(err), "left_out", leftOut)
	}
}
