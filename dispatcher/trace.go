// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// tracerName is the instrumentation scope of webhooks' spans.
const tracerName = "github.com/admission-dispatcher/dispatcher/dispatcher"

// startSpan begins the span of one invocation where the admission is sampled. The
// parent is asked first: even a span that records nothing costs microseconds.
func (inv *invocation) startSpan(ctx context.Context) context.Context {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx
	}
	w := inv.webhook
	ctx, inv.span = parent.TracerProvider().Tracer(tracerName).Start(ctx, "webhook "+w.Name, trace.WithAttributes(
		attribute.String("admission.webhook", w.Name),
		attribute.String("admission.configuration", w.Configuration),
		attribute.String("admission.mode", w.Mode.String()),
		attribute.Int("admission.round", inv.round),
	))
	return ctx
}

// endSpan ends the span with what the invocation came to. A denial is no error;
// that there is no usable answer is one, also where it is ignored.
func (inv *invocation) endSpan(o *Outcome) {
	if inv.span == nil {
		return
	}
	inv.span.SetAttributes(
		attribute.String("admission.outcome", o.Result.String()),
		attribute.Bool("admission.fail_open", o.FailsOpen() && inv.webhook.Mode != chain.Shadow),
		attribute.Int("admission.patch.operations", o.Operations),
	)
	if o.Cause != "" {
		inv.span.SetAttributes(attribute.String("error.type", string(o.Cause)))
	}
	if o.Result == Failed || o.Result == FailedOpen {
		inv.span.SetStatus(codes.Error, string(o.Cause))
	}
	inv.span.End()
	inv.span = nil
}
