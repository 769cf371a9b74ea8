// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// tracerName is the instrumentation scope of attempts' spans.
const tracerName = "github.com/admission-dispatcher/dispatcher/transport"

// attemptSpan is the client span of one attempt. The zero value is that of a call
// that is not sampled: the parent is asked first, because even a span that
// records nothing costs microseconds.
type attemptSpan struct{ span trace.Span }

// startSpan begins the span of an attempt where the call is sampled.
func startSpan(ctx context.Context, t *Target, e *Endpoint, kind Kind) (context.Context, attemptSpan) {
	if tracecontext.IsUnsampled(ctx) {
		return ctx, attemptSpan{}
	}
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, attemptSpan{}
	}
	ctx, span := parent.TracerProvider().Tracer(tracerName).Start(ctx, "POST",
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("http.request.method", fasthttp.MethodPost),
			attribute.String("url.full", t.url),
			attribute.String("admission.attempt.kind", kind.String()),
			attribute.String("network.peer.address", e.address.Addr().String()),
			attribute.Int("network.peer.port", int(e.address.Port())),
		), trace.WithAttributes(serverAttributes(t.url)...))
	return ctx, attemptSpan{span}
}

// serverAttributes say which server a URL names, as HTTP's semantic conventions
// want it of a client: host and port apart, whatever address is dialled.
func serverAttributes(address string) []attribute.KeyValue {
	u, err := url.Parse(address)
	if err != nil {
		return nil // a Target's URL has been parsed before
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = 443
	}
	return []attribute.KeyValue{attribute.String("server.address", u.Hostname()), attribute.Int("server.port", port)}
}

// end ends the span. A loser is marked, and one that failed: a denial is no error.
func (s attemptSpan) end(end *result, lost bool) {
	if s.span == nil {
		return
	}
	if end.status > 0 {
		s.span.SetAttributes(attribute.Int("http.response.status_code", end.status))
	}
	if lost {
		s.span.SetAttributes(attribute.Bool("admission.attempt.lost", true))
	}
	if end.err != nil {
		cause := string(causeOf(end.err))
		s.span.SetAttributes(attribute.String("error.type", cause))
		s.span.SetStatus(codes.Error, cause)
	}
	s.span.End()
}

// causeOf returns the closed word for why there is no usable answer.
func causeOf(err error) hook.Cause {
	if call, ok := errors.AsType[*hook.CallError](err); ok {
		return call.Cause
	}
	return hook.BadAnswer
}
