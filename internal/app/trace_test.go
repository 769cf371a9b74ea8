// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

// Two callers' traces: one that is sampled, one that is not.
const (
	sampledTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	sampled      = "00-" + sampledTrace + "-" + callersSpan + "-01"
	unsampled    = "00-1af7651916cd43dd8448eb211c80319c-" + callersSpan + "-00"
)

// exemplars are of sampled admissions, among them those that warm the webhook up.
var exemplars = regexp.MustCompile(`(?m) # \{.*trace_id="[0-9a-f]{32}"`)

// TestTraceOfAHedgedCall has the collector receive what a hedged call looks like:
// a server span below the caller's, a webhook's below it, two attempts below that,
// the loser marked; each attempt told the webhook which span it is.
func TestTraceOfAHedgedCall(t *testing.T) {
	for _, protocol := range []string{overHTTP, overGRPC} {
		t.Run(protocol, func(t *testing.T) { testTraceOfAHedgedCall(t, protocol) })
	}
}

func testTraceOfAHedgedCall(t *testing.T, protocol string) {
	receiver, r := newReceiver(t, protocol), newRig(t)
	r.start()
	client := r.clientOf(r.process.app.Address().String())
	if askTraced(t, client, unsampled); r.last().header.Get("Traceparent") != unsampled || r.last().header.Get("Baggage") != "" {
		t.Errorf("the webhook was told %q", r.last().header)
	}
	// Each round is a trace; in the last one the call is hedged, and the first attempt
	// answered when it is too late.
	trace, told, late := "", []string(nil), make(chan struct{})
	r.rounds("policy", func(round int) question {
		trace = fmt.Sprintf("%032x", round)
		return question{traceparent: "00-" + trace + "-" + callersSpan + "-01"}
	}, func(c *call, hedged bool) {
		if !hedged {
			c.until(late)
		}
		c.allow()
	}, func(got round) bool {
		if !got.hedged {
			return false
		}
		for _, c := range r.calls("policy") {
			told = append(told, c.header.Get("Traceparent"))
		}
		close(late)
		return true
	})
	eventually(t, "the trace arrives", func() bool { return len(receiver.received(trace)) == 4 })

	spans := receiver.received(trace)
	got := newSpanTree(spans, marks).below(callersSpan, "")
	const want = `SERVER POST /v1/clusters/{cluster}/validate allowed
  INTERNAL webhook policy.example.com allowed
    CLIENT POST first
    CLIENT POST hedge
`
	// The attempt that arrives at the webhook first is answered last: on a busy machine that
	// may be the hedge, which may even begin first.
	lines := strings.SplitAfter(got, "\n")
	slices.Sort(lines[min(2, len(lines)-1) : len(lines)-1])
	if got := strings.Replace(strings.Join(lines, ""), " lost\n", "\n", 1); got != want {
		t.Errorf("the trace without the mark of the loser (-want +got):\n%s", diff.Diff(want, got))
	}
	if n := strings.Count(got, " lost\n"); n != 1 {
		t.Errorf("%d attempts have lost", n)
	}
	t.Logf("the trace as received over %s:\n%s", protocol, newSpanTree(spans, timed).below(callersSpan, ""))
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "POST /") {
			for key, want := range map[string]string{"k8s.cluster.name": "east", "k8s.namespace.name": "shop", "admission.uid": "u-1", "admission.operation": "CREATE", "user.name": ""} {
				if value := attributeOf(s, key); value != want {
					t.Errorf("%s is %q", key, value)
				}
			}
		}
		if s.Name == "POST" && !slices.Contains(told, "00-"+trace+"-"+hex.EncodeToString(s.SpanId)+"-01") {
			t.Errorf("no attempt told of span %x", s.SpanId)
		}
	}
	if n := len(receiver.received("1af7651916cd43dd8448eb211c80319c")); n > 0 {
		t.Errorf("%d spans of a trace that is not sampled", n)
	}
	if !exemplars.MatchString(r.process.scrape()) {
		t.Error("no exemplar")
	}
}

// askTraced asks as a caller that traces.
func askTraced(t *testing.T, c *http.Client, traceparent string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1/v1/clusters/east/validate?timeout=10s", strings.NewReader(podReview)) //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", traceparent)
	req.Header.Set("Baggage", "secret=1")
	if _, err := exchangeReview(c, req); err != nil {
		t.Fatal(err)
	}
}
