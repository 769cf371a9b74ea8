// SPDX-License-Identifier: Apache-2.0

// Package tracecontext takes the caller's trace (W3C Trace Context) through an admission.
// Of one that is not sampled, which is nearly every one, it keeps the bytes: they are
// checked once and sent as they are, and are read only where somebody asks OpenTelemetry.
package tracecontext

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Fields are the header fields of a trace, as a propagation.TextMapCarrier. Baggage, and
// what else there may be, is not taken over.
type Fields struct{ Parent, State []byte }

// Get implements propagation.TextMapCarrier.
func (f *Fields) Get(key string) string {
	switch key {
	case "traceparent":
		return string(f.Parent)
	case "tracestate":
		return string(f.State)
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (f *Fields) Set(key, value string) {
	switch key {
	case "traceparent":
		f.Parent = []byte(value)
	case "tracestate":
		f.State = []byte(value)
	}
}

// Keys implements propagation.TextMapCarrier; nobody asks.
func (f *Fields) Keys() []string { return nil }

// Extract returns ctx with the trace of f, of which it keeps nothing; ctx itself where
// there is none that is valid.
func Extract(ctx context.Context, f Fields) context.Context {
	switch {
	case len(f.Parent) == 0:
		return ctx
	case len(f.State) == 0 && isUnsampled(f.Parent):
		return &unsampled{Context: ctx, parent: [parentSize]byte(f.Parent)}
	}
	return extract(ctx, f)
}

// extract is Extract of any trace. What it is given goes to the heap.
func extract(ctx context.Context, f Fields) context.Context {
	return propagation.TraceContext{}.Extract(ctx, &f)
}

// Inject returns the fields that tell of the trace that ctx is part of, the zero value
// where it is not part of any. They are borrowed from ctx.
func Inject(ctx context.Context) Fields {
	if u, ok := ctx.(*unsampled); ok {
		return Fields{Parent: u.parent[:]}
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return Fields{}
	}
	return inject(ctx)
}

// inject is Inject of any trace.
func inject(ctx context.Context) (f Fields) {
	propagation.TraceContext{}.Inject(ctx, &f)
	return f
}

// IsUnsampled reports whether the caller has decided against recording ctx, as far as can
// be seen at once: of a context that is derived from such a one it says no.
func IsUnsampled(ctx context.Context) bool {
	_, ok := ctx.(*unsampled)
	return ok
}

// SpanContext returns the span that ctx is of, or the zero value where IsUnsampled says that
// nobody records it: then there is nothing to read.
func SpanContext(ctx context.Context) trace.SpanContext {
	if IsUnsampled(ctx) {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(ctx)
}

// unsampled is a context with the traceparent of a trace that is not sampled.
type unsampled struct {
	context.Context
	parent [parentSize]byte
	once   sync.Once
	read   context.Context // with the same as a span context, once somebody has asked
}

// Value implements context.Context.
func (u *unsampled) Value(key any) any {
	if v := u.Context.Value(key); v != nil {
		return v
	}
	u.once.Do(func() {
		u.read = propagation.TraceContext{}.Extract(u.Context, &Fields{Parent: u.parent[:]})
	})
	return u.read.Value(key)
}

// parentSize is the length of a traceparent of version 00:
// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00.
const parentSize = 55

// isUnsampled reports whether a traceparent is valid, of version 00 and without the flag
// "sampled".
func isUnsampled(p []byte) bool {
	if len(p) != parentSize || string(p[:3]) != "00-" || p[35] != '-' || p[52] != '-' || p[53] != '0' || p[54] != '0' && p[54] != '2' {
		return false
	}
	return isID(p[3:35]) && isID(p[36:52])
}

// isID reports whether all of an id is hexadecimal, in lower case, and not all of it zero.
func isID(id []byte) bool {
	var some byte
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		some |= c - '0'
	}
	return some != 0
}
