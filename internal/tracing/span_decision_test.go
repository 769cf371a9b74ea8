// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
)

// kept is an exporter that keeps what it gets.
type kept struct{ spans []sdk.ReadOnlySpan }

// ExportSpans implements sdk.SpanExporter.
func (k *kept) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.spans = append(k.spans, spans...)
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (k *kept) Shutdown(context.Context) error { return nil }

// traced returns the spans of what do has decided.
func traced(t *testing.T, next tracing.Decider, do func(tracing.Decider)) []sdk.ReadOnlySpan {
	t.Helper()
	out := &kept{}
	tracing, err := tracing.New(tracing.Config{
		Environment: func(string) string { return "" }, Exporter: out, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	do(tracing.Wrap(next))
	tracing.Close()
	return out.spans
}

// verdict is a Decider that has made up its mind.
type verdict dispatcher.Verdict

// Dispatch implements tracing.Decider.
func (v verdict) Dispatch(_ context.Context, _ dispatcher.Request, into *dispatcher.Verdict) {
	*into = dispatcher.Verdict(v)
}

// Decline implements tracing.Decider.
func (v verdict) Decline(_ context.Context, _ dispatcher.Request, defect dispatcher.Defect, into *dispatcher.Verdict) {
	v.Unreadable, v.Response.Message = true, defect.Message
	*into = dispatcher.Verdict(v)
}

func spanRequest() dispatcher.Request {
	return dispatcher.Request{Review: &codec.Review{UID: []byte("u-1")}, Cluster: &chain.Cluster{Name: "east"}, Phase: chain.Validating, Deadline: time.Now().Add(time.Second)}
}

// said returns what a span says of these attributes, and its status.
func said(s sdk.ReadOnlySpan, keys ...attribute.Key) string {
	found := map[attribute.Key]string{}
	for _, a := range s.Attributes() {
		found[a.Key] = a.Value.String()
	}
	var parts []string
	for _, k := range keys {
		parts = append(parts, found[k])
	}
	return strings.Join(append(parts, s.Status().Code.String()), " ")
}

// The span says what the counters say, also of a denial in which another webhook
// failed open.
func TestSpanSaysTheDecision(t *testing.T) {
	down := dispatcher.Outcome{Result: dispatcher.FailedOpen, Cause: hook.Timeout}
	for name, c := range map[string]struct {
		verdict dispatcher.Verdict
		want    string
	}{
		"allowed":                 {dispatcher.Verdict{Response: codec.Response{Allowed: true}}, "allowed false false Unset"},
		"failed open":             {dispatcher.Verdict{Response: codec.Response{Allowed: true}, Outcomes: []dispatcher.Outcome{down}}, "failed_open true false Unset"},
		"denied, and failed open": {dispatcher.Verdict{Outcomes: []dispatcher.Outcome{{Result: dispatcher.Denied}, down}}, "denied true false Unset"},
		"shed":                    {dispatcher.Verdict{Outcomes: []dispatcher.Outcome{{Result: dispatcher.Failed, Cause: hook.Shed}}}, "failed false true Error"},
		"panicked":                {dispatcher.Verdict{Panicked: true}, "panicked false false Error"},
	} {
		t.Run(name, func(t *testing.T) {
			spans := traced(t, verdict(c.verdict), func(d tracing.Decider) { d.Dispatch(t.Context(), spanRequest(), new(dispatcher.Verdict)) })
			if len(spans) != 1 {
				t.Fatalf("%d spans", len(spans))
			}
			if got := said(spans[0], "admission.decision", "admission.fail_open", "admission.shed"); got != c.want {
				t.Errorf("the span says %q, want %q", got, c.want)
			}
		})
	}
}

// A review that cannot be judged has a span too.
func TestSpanOfTheUnreadable(t *testing.T) {
	spans := traced(t, verdict{}, func(d tracing.Decider) {
		d.Decline(t.Context(), spanRequest(), dispatcher.Defect{Message: "no kind"}, new(dispatcher.Verdict))
	})
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	if got, want := said(spans[0], "admission.decision", "k8s.cluster.name", "admission.uid"), "unreadable east u-1 "+codes.Unset.String(); got != want {
		t.Errorf("the span says %q, want %q", got, want)
	}
}

// A panic of the dispatcher, whose value may quote an object, leaves a span that
// has failed and does not quote it.
func TestSpanOfAPanic(t *testing.T) {
	const secret = "swordfish"
	d, err := dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	req := spanRequest()
	req.Review.Object.Raw = []byte(secret)
	spans := traced(t, d, func(d tracing.Decider) { d.Dispatch(t.Context(), req, new(dispatcher.Verdict)) }) // there is no chain
	if len(spans) != 1 || said(spans[0], "admission.decision") != "panicked Error" {
		t.Fatalf("spans %v", spans)
	}
	if text := fmt.Sprint(spans[0].Events(), spans[0].Attributes(), spans[0].Status()); strings.Contains(text, secret) || len(spans[0].Events()) > 0 {
		t.Errorf("the span says %s", text)
	}
}
