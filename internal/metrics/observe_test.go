// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// What an invocation came to is counted as what it is.
func TestObserve(t *testing.T) {
	const (
		names      = `configuration="policies"`
		configured = `webhook="w000.validating.example.com"`
		decision   = `dispatcher_requests_total{cluster="cluster-000",decision="`
		failOpen   = `dispatcher_fail_open_total{cause="`
		duration   = `dispatcher_webhook_call_duration_seconds_count{` + names + `,phase="validate",` + configured + `}`
		shed       = `dispatcher_shed_total{cluster="cluster-000",phase="validate"}`
	)
	decided := func(word string) string { return decision + word + `",phase="validate"}` }
	called := func(outcome string) string {
		return `dispatcher_webhook_calls_total{` + names + `,outcome="` + outcome + `",phase="validate",` + configured + `}`
	}
	opened := func(cause string) string {
		return failOpen + cause + `",cluster="cluster-000",` + names + `,` + configured + `}`
	}
	for name, c := range map[string]struct {
		result dispatcher.Result
		cause  hook.Cause
		there  []string
		absent []string
	}{
		"allowed":             {dispatcher.Allowed, "", []string{decided("allowed"), called("allowed"), duration}, []string{failOpen, shed}},
		"failed closed":       {dispatcher.Failed, hook.Timeout, []string{decided("failed"), called("failed"), duration}, []string{failOpen, shed}},
		"failed open":         {dispatcher.FailedOpen, hook.Timeout, []string{decided("failed_open"), called("failed_open"), opened("Timeout"), duration}, []string{called("failed"), shed}},
		"softened":            {dispatcher.Softened, "", []string{decided("allowed"), called("softened"), duration}, []string{failOpen, called("denied")}},
		"a matchCondition":    {dispatcher.Skipped, hook.MatchError, []string{decided("failed_open"), called("skipped"), opened("MatchError")}, []string{duration}},
		"a dry run, Warn":     {dispatcher.Skipped, hook.DryRun, []string{decided("allowed"), called("skipped")}, []string{failOpen, duration}},
		"given up on":         {dispatcher.Abandoned, "", []string{called("abandoned")}, []string{duration}},
		"spared":              {dispatcher.Failed, hook.BreakerOpen, []string{called("failed")}, []string{duration}},
		"no place, ignored":   {dispatcher.FailedOpen, hook.Shed, []string{shed, opened("Shed"), decided("failed_open")}, []string{duration}},
		"no place, fatal":     {dispatcher.Failed, hook.Shed, []string{shed, decided("failed")}, []string{failOpen, duration}},
		"a patch, not usable": {dispatcher.Refused, hook.BadPatch, []string{decided("refused"), called("refused"), duration}, []string{failOpen}},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := newFleet(t, 1, 2), newMetrics(t)
			m.Observe(context.Background(), f.record(f.clusters[0], chain.Validating, c.result, c.cause))
			text := scrape(t, m)
			for _, series := range c.there {
				if got := value(text, series); got != "1" {
					t.Errorf("%s is %q", series, got)
				}
			}
			for _, series := range c.absent {
				if strings.Contains(text, "\n"+series) {
					t.Errorf("there is %s", series)
				}
			}
		})
	}
}

// What is answered without any webhook is counted by cluster.
func TestObserveDeclined(t *testing.T) {
	f, m := newFleet(t, 1, 2), newMetrics(t)
	m.Observe(context.Background(), f.declined(f.clusters[0], chain.Mutating, dispatcher.Verdict{Unreadable: true}))
	m.Observe(context.Background(), f.declined(f.clusters[0], chain.Mutating, dispatcher.Verdict{Panicked: true}))
	m.TurnedAway("cluster-000", "no_route")
	m.TurnedAway("", "handshake")
	text := scrape(t, m)
	for _, series := range []string{
		`dispatcher_requests_total{cluster="cluster-000",decision="unreadable",phase="mutate"}`,
		`dispatcher_requests_total{cluster="cluster-000",decision="panicked",phase="mutate"}`,
		`dispatcher_refusals_total{cluster="cluster-000",reason="no_route"}`,
		`dispatcher_refusals_total{cluster="",reason="handshake"}`,
	} {
		if got := value(text, series); got != "1" {
			t.Errorf("%s is %q", series, got)
		}
	}
}

// What has left the configuration leaves the gauges, and stays in what counts.
func TestGaugesForget(t *testing.T) {
	f, m := newFleet(t, 2, 4), newMetrics(t)
	if err := m.Watch(f.source()); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.clusters {
		m.Observe(context.Background(), f.record(c, chain.Validating, dispatcher.Allowed, ""))
	}
	gone := []string{
		`dispatcher_webhook_info{configuration="policies",phase="validate",target="https://192.0.2.1/validating/001",webhook="w001.validating.example.com"}`,
		`dispatcher_endpoints{state="closed",target="https://192.0.2.1/validating/001"}`,
		`dispatcher_breaker_state{endpoint="192.0.2.1:443",target="https://192.0.2.1/validating/001"}`,
		`dispatcher_namespaces_stale{cluster="cluster-001"}`,
		`dispatcher_requests_in_flight{cluster="cluster-001"}`,
	}
	kept := []string{
		`dispatcher_requests_total{cluster="cluster-001",decision="allowed",phase="validate"}`,
		`dispatcher_webhook_calls_total{configuration="policies",outcome="allowed",phase="validate",webhook="w001.validating.example.com"}`,
	}
	before := scrape(t, m)
	f.load(t, 1, 2)
	after := scrape(t, m)
	for _, series := range gone {
		if value(before, series) == "" || value(after, series) != "" {
			t.Errorf("%s was %q and is %q", series, value(before, series), value(after, series))
		}
	}
	for _, series := range kept {
		if value(after, series) == "" {
			t.Errorf("%s has gone: the page says that it stays", series)
		}
	}
}
