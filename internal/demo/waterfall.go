// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/tracing"
)

// waterfallWidth is how many characters the time of an admission takes.
const waterfallWidth = 48

// printWaterfall draws the spans of one admission, each where it was in its time.
func printWaterfall(w io.Writer, about string, spans []tracing.Span) {
	if len(spans) == 0 {
		return
	}
	whole := spans[0]
	spans = below(spans, whole.Parent)
	_, _ = fmt.Fprintf(w, "\nOne of them as its trace: %s, %v\n\n", about, whole.End.Sub(whole.Start).Round(100*time.Microsecond))
	for _, s := range spans {
		indent := strings.Repeat("  ", depth(spans, s))
		_, _ = fmt.Fprintf(w, "  %-46s |%s| %8v  %s\n", cut(indent+title(s), 46), bar(whole, s), s.End.Sub(s.Start).Round(10*time.Microsecond), outcome(s))
	}
}

// below returns the spans below a parent, each followed by those below it.
func below(spans []tracing.Span, parent string) []tracing.Span {
	var list []tracing.Span
	for _, s := range spans {
		if s.Parent == parent {
			list = append(append(list, s), below(spans, s.ID)...)
		}
	}
	return list
}

// depth is how many spans s is below.
func depth(spans []tracing.Span, s tracing.Span) int {
	for _, parent := range spans {
		if parent.ID == s.Parent {
			return depth(spans, parent) + 1
		}
	}
	return 0
}

func title(s tracing.Span) string {
	if kind := s.Attributes["admission.attempt.kind"]; kind != "" {
		return kind + " attempt"
	}
	return s.Name
}

// outcome is what the span came to, in the words of its attributes.
func outcome(s tracing.Span) string {
	text := cmp.Or(s.Attributes["admission.decision"], s.Attributes["admission.outcome"])
	if status := s.Attributes["http.response.status_code"]; text == "" && status != "" {
		text = "HTTP " + status
	}
	if cause := s.Attributes["error.type"]; cause != "" {
		text = strings.TrimSpace(text + " " + cause)
	}
	if s.Attributes["admission.attempt.lost"] == "true" {
		text += " (lost)"
	}
	return text
}

// bar draws where s lies within the whole.
func bar(whole, s tracing.Span) string {
	at := func(t time.Time) int {
		return min(max(int(waterfallWidth*t.Sub(whole.Start)/max(whole.End.Sub(whole.Start), 1)), 0), waterfallWidth)
	}
	from := min(at(s.Start), waterfallWidth-1)
	length := max(at(s.End)-from, 1)
	return strings.Repeat(" ", from) + strings.Repeat("=", length) + strings.Repeat(" ", waterfallWidth-from-length)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-1] + "~"
}
