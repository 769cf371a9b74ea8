// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// TestSeries walks 100 clusters and 200 webhooks through both phases, first well,
// then through everything that is counted at all. The number of series stays
// bounded, visibly, and no count is lost.
func TestSeries(t *testing.T) {
	f, m := newFleet(t, 100, 200), newMetrics(t)
	if err := m.Watch(f.source()); err != nil {
		t.Fatal(err)
	}
	f.walk(m, dispatcher.Allowed, "")
	f.walk(m, dispatcher.Denied, "")
	f.bypass(m)
	f.attempt(m)
	if n := sum(samples(scrape(t, m))); n > metrics.SeriesWell || n < metrics.SeriesWell*9/10 {
		t.Errorf("%d series where all is well, SeriesWell is %d", n, metrics.SeriesWell)
	}
	for _, c := range f.clusters { // no webhook is heard anywhere
		for _, phase := range phases() {
			m.Observe(context.Background(), f.record(c, phase, dispatcher.FailedOpen, hook.Timeout))
		}
	}
	f.everything(m)
	text := scrape(t, m)
	worst := samples(text)
	if n := sum(worst); n > metrics.SeriesWorst || n < metrics.SeriesWorst*9/10 {
		t.Errorf("%d series where everything has happened, SeriesWorst is %d", n, metrics.SeriesWorst)
	}
	if n := worst["dispatcher_fail_open_total"]; n != 10_000 {
		t.Errorf("%d series of fail_open", n)
	}
	// One cause everywhere, and one more for each webhook in one cluster.
	const failed = 100*200 + 200
	if got, want := value(text, `dispatcher_fail_open_total{otel_metric_overflow="true"}`), fmt.Sprint(failed-9_999); got != want {
		t.Errorf("the overflow has %s, want %s", got, want)
	}
	for _, family := range metrics.Families() {
		if name := family.Prometheus(); worst[name]+worst[name+"_count"] == 0 {
			t.Errorf("%s has no series: the walk leaves it out", name)
		}
	}
}

// walk has every webhook of one cluster come to r, and one webhook of the others.
func (f *fleet) walk(m *metrics.Metrics, r dispatcher.Result, cause hook.Cause) {
	for i, c := range f.clusters {
		for _, phase := range phases() {
			record := f.record(c, phase, r, cause)
			if i > 0 {
				record.Verdict.Outcomes = record.Verdict.Outcomes[:1]
			}
			m.Observe(context.Background(), record)
		}
	}
}

func (f *fleet) bypass(m *metrics.Metrics) {
	for _, c := range f.clusters {
		for _, phase := range phases() {
			for _, rule := range []string{"kube-system", "leases", "exempt-kind"} {
				r := f.record(c, phase, dispatcher.Allowed, "")
				r.Verdict = &dispatcher.Verdict{Bypass: rule}
				m.Observe(context.Background(), r)
			}
		}
	}
}

// attempt has every webhook asked in every way.
func (f *fleet) attempt(m *metrics.Metrics) {
	for _, phase := range phases() {
		for _, w := range f.clusters[0].Chain(phase).Webhooks {
			for _, kind := range []transport.Kind{transport.First, transport.Retry, transport.Hedge} {
				m.Attempted(context.Background(), transport.Attempt{Owner: w.ID, Kind: kind})
			}
		}
	}
}

// everything counts what there is beside: every kind of decision and outcome, with
// every cause that there may be, refusals for every reason.
func (f *fleet) everything(m *metrics.Metrics) {
	ctx := context.Background()
	for _, r := range []dispatcher.Result{dispatcher.Refused, dispatcher.Failed, dispatcher.Softened, dispatcher.Abandoned} {
		f.walk(m, r, "")
	}
	for _, c := range f.clusters {
		for _, result := range []string{"allowed", "denied", "failed", "cached", "shed"} {
			m.AccessReviewed(c.Name, result, time.Millisecond)
		}
		for _, reason := range server.Reasons() {
			m.TurnedAway(c.Name, reason)
		}
		for _, phase := range phases() {
			m.Observe(ctx, f.declined(c, phase, dispatcher.Verdict{Unreadable: true}))
			m.Observe(ctx, f.declined(c, phase, dispatcher.Verdict{Panicked: true}))
			older := f.declined(c, phase, dispatcher.Verdict{})
			older.Outdated = true
			m.Observe(ctx, older)
		}
	}
	f.walk(m, dispatcher.Failed, hook.Shed)
	for _, phase := range phases() {
		for _, cause := range hook.Causes() {
			m.Observe(ctx, f.record(f.clusters[0], phase, dispatcher.Skipped, cause))
		}
		for _, w := range f.clusters[0].Chain(phase).Webhooks {
			m.Refused(ctx, w.ID)
			m.Disagreed(ctx, w.ID)
			m.Misread(ctx, w.ID)
			for _, of := range []breaker.Change{{}, {Cluster: "east"}, {Cluster: "east", Resource: "/pods"}} {
				for of.To = range breaker.Ramping + 1 {
					m.CircuitChanged(w.Hook.(hook.Located).Where(), of)
				}
			}
			f.shadow(m, phase, w)
		}
	}
}

func (f *fleet) shadow(m *metrics.Metrics, phase chain.Phase, w *chain.Entry) {
	for _, r := range []dispatcher.Result{dispatcher.Allowed, dispatcher.Denied, dispatcher.Refused, dispatcher.Failed, dispatcher.FailedOpen, dispatcher.Skipped} {
		m.ObserveShadow(context.Background(), &dispatcher.ShadowRecord{Phase: phase, Outcome: &dispatcher.Outcome{Webhook: w, Result: r}})
	}
	m.ObserveShadow(context.Background(), &dispatcher.ShadowRecord{Phase: phase, Outcome: &dispatcher.Outcome{Webhook: w}, Dropped: true})
}

func phases() []chain.Phase { return []chain.Phase{chain.Mutating, chain.Validating} }

func newMetrics(t testing.TB) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(metrics.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// samples counts the series of our own by their names.
func samples(text string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "dispatcher_") {
			counts[line[:strings.IndexAny(line, "{ ")]]++
		}
	}
	return counts
}

// value returns what a series says, empty if there is none.
func value(text, series string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// What has not counted takes no room: of each cluster, and of each webhook, one series has.
func TestUnusedSeriesTakeNoRoom(t *testing.T) {
	for _, size := range [][2]int{{700, 2}, {1, 1400}} {
		f, m := newFleet(t, size[0], size[1]), newMetrics(t)
		for _, c := range f.clusters {
			for _, p := range phases() {
				m.Observe(context.Background(), f.record(c, p, dispatcher.Allowed, ""))
			}
			for _, w := range c.Validating.Webhooks {
				m.Attempted(context.Background(), transport.Attempt{Owner: w.ID})
			}
		}
		if text := scrape(t, m); strings.Contains(text, "otel_metric_overflow") {
			t.Errorf("%d clusters, %d webhooks: something is beyond the limit of 10,000", size[0], size[1])
		}
	}
}
