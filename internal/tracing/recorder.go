// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"slices"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Recorder keeps spans in memory in place of sending them, for who shows them at
// once. It is safe for concurrent use, and keeps all it gets.
type Recorder struct {
	mu    sync.Mutex
	spans []Span
}

// Span is what a Recorder keeps of one.
type Span struct {
	Name              string
	Trace, ID, Parent string // in hexadecimal; Parent is of zeros where there is none
	Start, End        time.Time
	Attributes        map[string]string
	Failed            bool
}

// ExportSpans implements sdk.SpanExporter.
func (r *Recorder) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spans {
		kept := Span{
			Name: s.Name(), Trace: s.SpanContext().TraceID().String(), ID: s.SpanContext().SpanID().String(), Parent: s.Parent().SpanID().String(),
			Start: s.StartTime(), End: s.EndTime(), Attributes: map[string]string{}, Failed: s.Status().Description != "",
		}
		for _, a := range s.Attributes() {
			kept.Attributes[string(a.Key)] = a.Value.String()
		}
		r.spans = append(r.spans, kept)
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (r *Recorder) Shutdown(context.Context) error { return nil }

// Admission returns the spans of the trace of the admission with that uid, in the
// order of their start; none if it has not been recorded yet.
func (r *Recorder) Admission(uid string) []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.spans, func(s Span) bool { return s.Attributes["admission.uid"] == uid })
	if i < 0 {
		return nil
	}
	var trace []Span
	for _, s := range r.spans {
		if s.Trace == r.spans[i].Trace {
			trace = append(trace, s)
		}
	}
	slices.SortStableFunc(trace, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return trace
}
