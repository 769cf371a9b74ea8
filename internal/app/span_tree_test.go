// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
)

// spanTree renders spans as a tree: kind, name, and what more says of each.
type spanTree struct {
	spans []*traces.Span
	more  func(*traces.Span) string
}

// newSpanTree sorts the spans by their start.
func newSpanTree(spans []*traces.Span, more func(*traces.Span) string) spanTree {
	slices.SortFunc(spans, func(a, b *traces.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return spanTree{spans, more}
}

// below renders the spans below a parent, children indented.
func (t spanTree) below(parent, indent string) string {
	var text strings.Builder
	for _, s := range t.spans {
		if hex.EncodeToString(s.ParentSpanId) == parent {
			fmt.Fprintf(&text, "%s%s %s%s\n", indent, strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), s.Name, t.more(s))
			text.WriteString(t.below(hex.EncodeToString(s.SpanId), indent+"  "))
		}
	}
	return text.String()
}

// marks are what a span came to: the verdict, the kind of an attempt, whether it
// lost, its error.
func marks(s *traces.Span) string {
	line := ""
	for _, key := range []string{"admission.decision", "admission.outcome", "admission.attempt.kind", "error.type"} {
		if value := attributeOf(s, key); value != "" {
			line += " " + value
		}
	}
	if attributeOf(s, "admission.attempt.lost") == "true" {
		line += " lost"
	}
	return line
}

// timed adds to the marks how long it took.
func timed(s *traces.Span) string {
	elapsed := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
	return fmt.Sprintf("%s  %s", marks(s), elapsed.Round(10*time.Microsecond))
}

func attributeOf(s *traces.Span, key string) string {
	for _, kv := range s.Attributes {
		if kv.Key != key {
			continue
		}
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_BoolValue:
			return fmt.Sprint(v.BoolValue)
		case *common.AnyValue_IntValue:
			return fmt.Sprint(v.IntValue)
		}
	}
	return ""
}
