// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// Each attempt ends its span, and says what became of it.
func TestSpansOfARace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(kept))
		x := newTable(t, 1)
		ctx, parent := provider.Tracer("").Start(t.Context(), "webhook")
		x.ctx = ctx
		x.call(Repeat{Safe: true}, reset, says(0, true))
		x.attempts()
		parent.End()
		var got []string
		for _, s := range kept.Ended() {
			got = append(got, s.Name()+" "+s.Status().Code.String())
		}
		if want := []string{"POST Error", "POST Unset", "webhook Unset"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Kinds have names; there are no others.
func TestKinds(t *testing.T) {
	for k, want := range []string{"first", "retry", "hedge", "unknown"} {
		if got := Kind(k).String(); got != want {
			t.Errorf("%d is %q", k, got)
		}
	}
}

// An attempt's span has what HTTP's semantic conventions ask of a client; it is an
// error where there is no usable answer, never for a denial.
func TestAttemptSpan(t *testing.T) {
	t.Run("not sampled", func(t *testing.T) {
		ctx, span := startSpan(t.Context(), &Target{url: "https://a.example.com/"}, nil, First)
		if ctx != t.Context() || span.span != nil {
			t.Error("there is a span")
		}
		span.end(&result{}, true)
	})
	for name, c := range map[string]struct {
		url, address, port string
		end                result
		code               codes.Code
		kind               string
	}{
		"allowed":    {"https://policy.example.com/v", "policy.example.com", "443", says(0, true).result, codes.Unset, ""},
		"denied":     {"https://policy.example.com:8443/v", "policy.example.com", "8443", says(0, false).result, codes.Unset, ""},
		"no answer":  {"https://[2001:db8::1]:9443/v", "2001:db8::1", "9443", fails(0, hook.Timeout, breaker.TimedOut).result, codes.Error, "Timeout"},
		"bad answer": {"https://[2001:db8::1]/v", "2001:db8::1", "443", result{err: errors.New("malformed"), status: 200}, codes.Error, "BadAnswer"},
	} {
		kept := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(kept))
		ctx, parent := provider.Tracer("").Start(t.Context(), "webhook")
		e := newEndpoint(&origin{}, netip.MustParseAddrPort("10.0.0.1:443"), breaker.Settings{})
		attempt, span := startSpan(ctx, &Target{url: c.url}, e, Hedge)
		sent := tracecontext.Inject(attempt)
		span.end(&c.end, c.end.status > 0)
		parent.End()
		if scope := kept.Ended()[0].InstrumentationScope().Name; scope != reflect.TypeFor[Target]().PkgPath() {
			t.Errorf("%s: the instrumentation scope is %s", name, scope)
		}
		spanContext := kept.Ended()[0].SpanContext()
		if want := fmt.Sprintf("00-%s-%s-01", spanContext.TraceID(), spanContext.SpanID()); string(sent.Parent) != want || len(sent.State) > 0 {
			t.Errorf("%s: the webhook is sent %q, want %s", name, sent, want)
		}
		got := map[string]string{}
		for _, a := range kept.Ended()[0].Attributes() {
			got[string(a.Key)] = a.Value.String()
		}
		if status := kept.Ended()[0].Status(); status.Code != c.code {
			t.Errorf("%s: the status is %v", name, status)
		}
		for key, want := range map[string]string{
			"http.request.method":       "POST",
			"url.full":                  c.url,
			"server.address":            c.address,
			"server.port":               c.port,
			"network.peer.address":      "10.0.0.1",
			"network.peer.port":         "443",
			"admission.attempt.kind":    "hedge",
			"error.type":                c.kind,
			"admission.attempt.lost":    map[bool]string{true: "true"}[c.end.status > 0],
			"http.response.status_code": map[bool]string{true: fmt.Sprint(c.end.status)}[c.end.status > 0],
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got[key], want)
			}
		}
	}
}
