// SPDX-License-Identifier: Apache-2.0

package tracecontext_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

// compare compares what is taken over of header fields with what OpenTelemetry takes over,
// and says whether the bytes are kept.
func compare(t *testing.T, traceparent, tracestate string) (kept bool) {
	t.Helper()
	given := tracecontext.Fields{Parent: []byte(traceparent), State: []byte(tracestate)}
	got := tracecontext.Extract(t.Context(), given)
	kept = tracecontext.IsUnsampled(got)
	clear(given.Parent) // the caller's to use again
	carrier := propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate}
	want := propagation.TraceContext{}.Extract(t.Context(), carrier)
	sent := tracecontext.Inject(got)
	wanted := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(want, wanted)
	if string(sent.Parent) != wanted["traceparent"] || string(sent.State) != wanted["tracestate"] {
		t.Errorf("%q and %q: sends %q and %q, want %v", traceparent, tracestate, sent.Parent, sent.State, wanted)
	}
	for range 2 {
		is, wants := trace.SpanContextFromContext(got), trace.SpanContextFromContext(want)
		if !is.Equal(wants) {
			t.Errorf("%q and %q: the span context is %v, want %v", traceparent, tracestate, is, wants)
		}
	}
	if kept && trace.SpanContextFromContext(want).IsSampled() {
		t.Errorf("%q: it is sampled", traceparent)
	}
	return kept
}

// What is kept of a trace is what OpenTelemetry would take over.
func TestExtract(t *testing.T) {
	for _, row := range []struct {
		parent, state string
		kept          bool
	}{
		{"", "", false},
		{parent + "00", "", true},
		{parent + "02", "", true},
		{parent + "00", "a=1", false},
		{parent + "01", "", false},
		{parent + "03", "", false},
		{parent + "04", "", false},
		{parent + "10", "", false},
		{parent + "000", "", false},
		{parent + "0", "", false},
		{"01" + parent[2:] + "00", "", false},
		{"ff" + parent[2:] + "00", "", false},
		{"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "", false},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-00", "", false},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-00", "", false},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-00", "", false},
		{"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-00", "", false},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_00", "", false},
		{"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "", false},
	} {
		if kept := compare(t, row.parent, row.state); kept != row.kept {
			t.Errorf("%q and %q: kept %v", row.parent, row.state, kept)
		}
	}
}

// The webhook is told the state of the trace, too, and no baggage.
func TestInject(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=a")
	if err != nil {
		t.Fatal(err)
	}
	member, err := baggage.NewMember("user", "ann")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	if sent := tracecontext.Inject(baggage.ContextWithBaggage(t.Context(), bag)); len(sent.Parent)+len(sent.State) > 0 {
		t.Errorf("without a trace: %q", sent)
	}
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state})
	sent := tracecontext.Inject(trace.ContextWithSpanContext(t.Context(), of))
	if want := fmt.Sprintf("00-%s-%s-00", of.TraceID(), of.SpanID()); string(sent.Parent) != want || string(sent.State) != "vendor=a" {
		t.Errorf("%q, want %s", sent, want)
	}
}

// A span that somebody begins below is the one that is told of.
func TestInjectTellsOfTheSpanBelow(t *testing.T) {
	ctx := tracecontext.Extract(t.Context(), tracecontext.Fields{Parent: []byte(parent + "00")})
	below := trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	if f := tracecontext.Inject(below); tracecontext.IsUnsampled(below) || string(f.Parent) != "00-01000000000000000000000000000000-0200000000000000-00" {
		t.Errorf("it sends %q", f.Parent)
	}
	type key struct{}
	above := context.WithValue(t.Context(), key{}, "x")
	if v := tracecontext.Extract(above, tracecontext.Fields{Parent: []byte(parent + "00")}).Value(key{}); v != "x" {
		t.Errorf("the value is %v", v)
	}
}

// The span of a trace that is not sampled is not read, any other is.
func TestSpanContext(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true} {
		ctx := tracecontext.Extract(t.Context(), tracecontext.Fields{Parent: []byte(parent + flags)})
		if got := tracecontext.SpanContext(ctx); got.IsValid() != want {
			t.Errorf("with %s it is %v", flags, got)
		}
	}
	if got := tracecontext.SpanContext(t.Context()); got.IsValid() {
		t.Errorf("without a trace it is %v", got)
	}
}

// Nothing is allocated where there is no trace, and one context for one that is not sampled.
func TestAllocations(t *testing.T) {
	fields, ctx := tracecontext.Fields{Parent: []byte(parent + "00")}, t.Context()
	for want, f := range map[float64]tracecontext.Fields{0: {}, 1: fields} {
		allocations := testing.AllocsPerRun(100, func() {
			ctx := tracecontext.Extract(ctx, f)
			tracecontext.Inject(ctx)
			tracecontext.SpanContext(ctx)
		})
		if n := allocations; n != want {
			t.Errorf("%v allocations, want %v", n, want)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, flags := range []string{"00", "01", "02", "04", "0"} {
		f.Add([]byte(parent+flags), []byte(nil))
	}
	f.Add([]byte(parent+"00"), []byte("a=1"))
	f.Fuzz(func(t *testing.T, parent, state []byte) {
		if !bytes.ContainsAny(state, "\r\n\x00") {
			compare(t, string(parent), string(state))
		}
	})
}
