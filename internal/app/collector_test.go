// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlpReceiver is a collector that keeps the spans that it is sent.
type otlpReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*traces.Span
}

// newReceiver starts a collector and makes the environment name it.
func newReceiver(t *testing.T) *otlpReceiver {
	t.Helper()
	r := &otlpReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return r
}

func (r *otlpReceiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		http.Error(w, "no OTLP", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
}

// received returns the spans of one trace so far.
func (r *otlpReceiver) received(trace string) []*traces.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*traces.Span
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) == trace {
			found = append(found, s)
		}
	}
	return found
}

// text returns everything that was received, in words.
func (r *otlpReceiver) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	for _, s := range r.spans {
		fmt.Fprintln(&text, s.String())
	}
	return text.String()
}

// tree renders the spans below parent, children indented: kind, name, the marks of
// attempts and of errors.
func tree(spans []*traces.Span, parent, indent string) string {
	var lines []string
	for _, s := range spans {
		if hex.EncodeToString(s.ParentSpanId) != parent {
			continue
		}
		line := indent + strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_") + " " + s.Name
		for _, key := range []string{"admission.decision", "admission.outcome", "admission.attempt.kind", "admission.attempt.lost", "error.type"} {
			if value := attributeOf(s, key); value != "" {
				line += " " + value
			}
		}
		lines = append(lines, line+"\n"+tree(spans, hex.EncodeToString(s.SpanId), indent+"  "))
	}
	return strings.Join(lines, "")
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
