// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// The families that are read when somebody scrapes.
const (
	requestsInFlight = "dispatcher.requests.in_flight"
	inFlightLimit    = "dispatcher.requests.in_flight.limit"
)

// requestMetrics are the instruments of admissions as their callers see them.
type requestMetrics struct {
	requests, shed, bypasses, failOpen, outdated, refusals counters
	duration, left                                         histograms
}

func (m *requestMetrics) families() []Family {
	return []Family{
		{"dispatcher.requests", Counter, "{request}", labels(cluster(), phase(), decision()),
			"Admissions answered. `failed_open`: allowed although a webhook was not heard; `failed`: denied because a webhook was not heard; `refused`: denied by the dispatcher itself, whatever the failure policy; `unreadable`: denied because the review cannot be judged; `panicked`: denied because of a bug of the dispatcher.", &m.requests},
		{"dispatcher.request.duration", Histogram, "s", labels(cluster(), phase(), decision()),
			"Time from the decoded review to the verdict.", &m.duration},
		{requestsInFlight, ObservedGauge, "{request}", labels(cluster()),
			"Admissions for which webhooks are being called. A cluster without any has no series.", nil},
		{inFlightLimit, ObservedGauge, "{request}", labels(closed("scope", "all", "cluster")),
			"How many there may be, of `all` clusters together and of one `cluster`.", nil},
		{"dispatcher.deadline_left", Histogram, "s", labels(phase()),
			"Time that was left of the caller's deadline when the verdict was there.", &m.left},
		{"dispatcher.shed", Counter, "{request}", labels(cluster(), phase()),
			"Admissions of which at least one call found no place, under `limits.admissions`, `admissionsPerCluster`, `reviewBytes` or `callsPerEndpoint`; each webhook's failure policy decided.", &m.shed},
		{"dispatcher.bypass", Counter, "{request}", labels(cluster(), phase(), named("rule")),
			"Admissions that passed without any webhook being asked, by the rule that let them.", &m.bypasses},
		{"dispatcher.fail_open", Counter, "{call}", labels(cluster(), configuration(), webhook(), cause()),
			"Webhooks that should have had their say, did not, and did not block the request: under `failurePolicy: Ignore`, a `failOpen` rule or the mode Warn.", &m.failOpen},
		{"dispatcher.registration.outdated", Counter, "{request}", labels(cluster(), phase()),
			"Admissions on a path that is not one of those that `dispatcher registration` prints for the cluster now: the cluster applies an older registration. They are served.", &m.outdated},
		{"dispatcher.refusals", Counter, "{request}", labels(cluster(), reason()),
			"Requests and connections that were turned away before they were an admission: the caller's own failurePolicy decides those. `cluster` is who the credentials belong to, whatever the path says; empty where that is nobody.", &m.refusals},
	}
}

// Observe implements dispatcher.Observer. What is rare may look for its series.
func (m *Metrics) Observe(ctx context.Context, r *dispatcher.Record) {
	g := m.sets.of(r.Snapshot)
	c := g.cluster(m, r.Cluster)
	decided := &c.decided[r.Phase][r.Verdict.Decision()]
	answered := moment{r.End(), tracecontext.SpanContext(ctx)}
	decided.requests.point().Add(1)
	m.duration.record(ctx, decided.duration, r.Elapsed, &answered)
	m.left.record(ctx, m.phases[r.Phase], r.Deadline.Sub(answered.at), &answered)
	if r.Verdict.Shed() {
		m.shed.with(c.name, phaseAttr(r.Phase)).point().Add(1)
	}
	if r.Verdict.Bypass != "" {
		m.bypasses.with(c.name, phaseAttr(r.Phase), attribute.String("rule", r.Verdict.Bypass)).point().Add(1)
	}
	if r.Outdated {
		m.outdated.with(c.name, phaseAttr(r.Phase)).point().Add(1)
	}
	for i := range r.Verdict.Outcomes {
		o := &r.Verdict.Outcomes[i]
		m.outcome(ctx, c, g.webhook(m, o.Webhook, r.Phase), o, &answered)
	}
}

// TurnedAway implements server.Observer.
func (m *Metrics) TurnedAway(cluster, reason string) {
	m.refusals.with(attribute.String("cluster", cluster), attribute.String("reason", reason)).point().Add(1)
}
