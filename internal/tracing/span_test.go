// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

// decided is a Decider whose verdict is known.
type decided dispatcher.Verdict

func (d decided) Dispatch(_ context.Context, _ dispatcher.Request, v *dispatcher.Verdict) {
	*v = dispatcher.Verdict(d)
}

func (d decided) Decline(_ context.Context, _ dispatcher.Request, _ dispatcher.Defect, v *dispatcher.Verdict) {
	*v = dispatcher.Verdict(d)
}

// unset is an environment without any of the variables.
func unset(string) string { return "" }

// spanOf returns the server span of an admission.
func spanOf(t *testing.T, req dispatcher.Request, v dispatcher.Verdict) sdk.ReadOnlySpan {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	tracing, err := New(Config{Environment: unset, Exporter: kept, UserNames: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer tracing.Close()
	tracing.Wrap(decided(v)).Dispatch(t.Context(), req, new(dispatcher.Verdict))
	if err := tracing.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := kept.GetSpans().Snapshots()
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	return spans[0]
}

func attributesOf(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func requestOf(host string) dispatcher.Request {
	return dispatcher.Request{
		Cluster: &chain.Cluster{Name: "east"}, Phase: chain.Validating, Snapshot: "one", Host: []byte(host),
		Review: &codec.Review{UID: []byte("u-1"), Namespace: []byte("a" + strings.Repeat("é", 200))},
	}
}

// The server span has what HTTP's semantic conventions ask of one, and begins when
// the request arrived.
func TestServerSpan(t *testing.T) {
	req := requestOf("dispatcher.example.com:8443")
	req.Arrived = time.Now().Add(-time.Minute)
	s := spanOf(t, req, dispatcher.Verdict{Response: codec.Response{Allowed: true}})
	if s.Name() != "POST /v1/clusters/{cluster}/validate" || !s.StartTime().Equal(req.Arrived) {
		t.Errorf("%s from %s", s.Name(), s.StartTime())
	}
	got := attributesOf(s)
	for key, want := range map[string]string{
		"http.request.method":       "POST",
		"http.route":                "/v1/clusters/{cluster}/validate",
		"http.response.status_code": "200",
		"url.scheme":                "https",
		"url.path":                  "/v1/clusters/east/validate",
		"server.address":            "dispatcher.example.com",
		"server.port":               "8443",
		"error.type":                "",
		"k8s.namespace.name":        "a" + strings.Repeat("é", 127),
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

func TestServerAttributes(t *testing.T) {
	for host, want := range map[string][2]string{
		"dispatcher.example.com": {"dispatcher.example.com", "443"},
		"10.0.0.1:8443":          {"10.0.0.1", "8443"},
		"[2001:db8::1]:8443":     {"2001:db8::1", "8443"},
		"[2001:db8::1]":          {"2001:db8::1", "443"},
		"":                       {},
		":8443":                  {},
		"a b":                    {},
		"%zz":                    {},
		"a%ff.example":           {"a?.example", "443"},
	} {
		s := spanOf(t, requestOf(host), dispatcher.Verdict{})
		got := attributesOf(s)
		if diff := cmp.Diff(want, [2]string{got["server.address"], got["server.port"]}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", host, diff)
		}
	}
}

// The status is Error where a webhook was not heard and that denied, never for a
// denial.
func TestServerSpanStatus(t *testing.T) {
	for name, c := range map[string]struct {
		result dispatcher.Result
		code   codes.Code
		kind   string
	}{
		"denied":      {dispatcher.Denied, codes.Unset, ""},
		"refused":     {dispatcher.Refused, codes.Unset, ""},
		"failed":      {dispatcher.Failed, codes.Error, "Timeout"},
		"failed open": {dispatcher.FailedOpen, codes.Unset, ""},
		"allowed":     {dispatcher.Allowed, codes.Unset, ""},
	} {
		o := dispatcher.Outcome{Result: c.result}
		if c.kind != "" {
			o.Cause = "Timeout"
		}
		s := spanOf(t, requestOf("d"), dispatcher.Verdict{Response: codec.Response{Allowed: !o.Denies()}, Outcomes: []dispatcher.Outcome{o}})
		if s.Status().Code != c.code || attributesOf(s)["error.type"] != c.kind {
			t.Errorf("%s: %v, error.type %q", name, s.Status(), attributesOf(s)["error.type"])
		}
	}
}

func TestNewRefusesWhatIsWrong(t *testing.T) {
	wrong := func(name string) string { return map[string]string{"OTEL_TRACES_SAMPLER": "nonsense"}[name] }
	if tracing, err := New(Config{Environment: wrong}); err == nil || tracing != nil {
		t.Errorf("%v, %v", tracing, err)
	}
}
