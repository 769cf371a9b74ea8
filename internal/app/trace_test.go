// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

// Two callers' traces: one that is sampled, one that is not.
const (
	sampledTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	sampled      = "00-" + sampledTrace + "-" + callersSpan + "-01"
	unsampled    = "00-1af7651916cd43dd8448eb211c80319c-" + callersSpan + "-00"
)

// warmth is for how long answers are watched before their usual time is known.
const warmth = 700 * time.Millisecond

// TestTraceOfAHedgedCall has the collector receive what a hedged call looks like:
// a server span below the caller's, a webhook's below it, two attempts below that,
// the loser marked; each attempt told the webhook which span it is.
func TestTraceOfAHedgedCall(t *testing.T) {
	for _, protocol := range []string{overHTTP, overGRPC} {
		t.Run(protocol, func(t *testing.T) { testTraceOfAHedgedCall(t, protocol) })
	}
}

func testTraceOfAHedgedCall(t *testing.T, protocol string) {
	receiver, w := newReceiver(t, protocol), newWorld(t)
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())
	for begin := time.Now(); time.Since(begin) < warmth; {
		askTraced(t, c, unsampled)
	}
	if got := w.headersOf(func() { askTraced(t, c, unsampled) }); got.Get("Traceparent") != unsampled || got.Get("Baggage") != "" {
		t.Errorf("the webhook was told %q", got)
	}
	slow := newSlowFirst()
	w.answers(slow.answer(w))
	askTraced(t, c, sampled)
	close(slow.release)
	eventually(t, "the trace arrives", func() bool { return len(receiver.received(sampledTrace)) == 4 })

	spans := receiver.received(sampledTrace)
	got := newSpanTree(spans, marks).below(callersSpan, "")
	want := `SERVER POST /v1/clusters/{cluster}/validate allowed
  INTERNAL webhook policy.example.com allowed
    CLIENT POST first lost
    CLIENT POST hedge
`
	if d := diff.Diff(want, got); d != "" {
		t.Errorf("the trace (-want +got):\n%s", d)
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
		if s.Name == "POST" && !slow.was("00-"+sampledTrace+"-"+hex.EncodeToString(s.SpanId)+"-01") {
			t.Errorf("no attempt told of span %x", s.SpanId)
		}
	}
	if n := len(receiver.received("1af7651916cd43dd8448eb211c80319c")); n > 0 {
		t.Errorf("%d spans of a trace that is not sampled", n)
	}
	if !strings.Contains(p.scrape(), `# {span_id=`) && !strings.Contains(p.scrape(), `trace_id="`+sampledTrace) {
		t.Error("no exemplar")
	}
}

// slowFirst is a webhook whose first answer is late.
type slowFirst struct {
	release chan struct{}
	came    atomic.Bool // the first
	mu      sync.Mutex
	told    []string
}

func newSlowFirst() *slowFirst { return &slowFirst{release: make(chan struct{})} }

func (s *slowFirst) answer(w *world) func(http.ResponseWriter, string) {
	return func(rw http.ResponseWriter, uid string) {
		w.mu.Lock()
		told := w.seen.Get("Traceparent")
		w.mu.Unlock()
		s.mu.Lock()
		s.told = append(s.told, told)
		s.mu.Unlock()
		if s.came.CompareAndSwap(false, true) {
			<-s.release
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, uid)
	}
}

func (s *slowFirst) was(told string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.told, told)
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
