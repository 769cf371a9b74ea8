// SPDX-License-Identifier: Apache-2.0

package telemetry

// The names of the families, as OpenTelemetry writes them.
const (
	requests          = "dispatcher.requests"
	requestDuration   = "dispatcher.request.duration"
	requestsInFlight  = "dispatcher.requests.in_flight"
	deadlineLeft      = "dispatcher.deadline_left"
	shed              = "dispatcher.shed"
	bypasses          = "dispatcher.bypass"
	failOpen          = "dispatcher.fail_open"
	webhookCalls      = "dispatcher.webhook.calls"
	webhookDuration   = "dispatcher.webhook.call.duration"
	webhookErrors     = "dispatcher.webhook.errors"
	webhookAttempts   = "dispatcher.webhook.attempts"
	webhookRefused    = "dispatcher.webhook.budget_refused"
	webhookDisagreed  = "dispatcher.webhook.disagreements"
	webhookMisread    = "dispatcher.webhook.misread"
	webhookOperations = "dispatcher.webhook.patch_operations"
	webhookInfo       = "dispatcher.webhook.info"
	webhooksPending   = "dispatcher.webhooks.pending"
	breakerState      = "dispatcher.breaker.state"
	endpoints         = "dispatcher.endpoints"
	targetConnections = "dispatcher.target.connections"
	targetsDraining   = "dispatcher.targets.draining"
	connections       = "dispatcher.connections"
	configReloads     = "dispatcher.config.reloads"
	configSuccess     = "dispatcher.config.last_success.timestamp"
	configInfo        = "dispatcher.config.info"
	configProblems    = "dispatcher.config.problems"
	certificateExpiry = "dispatcher.certificate.expiry.timestamp"
	namespacesStale   = "dispatcher.namespaces.stale"
	telemetryDropped  = "dispatcher.telemetry.dropped"
	buildInfo         = "dispatcher.build.info"
)

// Families returns every family that the process exports of its own, in the order
// of the documentation.
func Families() []Family {
	return concat(requestFamilies(), webhookFamilies(), targetFamilies(), processFamilies())
}

func concat(groups ...[]Family) []Family {
	var all []Family
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func requestFamilies() []Family {
	return []Family{
		{requests, Counter, "{request}", labels(cluster(), phase(), decision()),
			"Admissions decided. `failed_open`: allowed although a webhook was not heard; `failed`: denied because a webhook was not heard; `refused`: denied by the dispatcher itself, whatever the failure policy."},
		{requestDuration, Histogram, "s", labels(cluster(), phase(), decision()),
			"Time from the decoded review to the verdict."},
		{requestsInFlight, ObservedGauge, "{request}", labels(cluster()),
			"Admissions for which webhooks are being called. A cluster without any has no series."},
		{deadlineLeft, Histogram, "s", labels(phase()),
			"Time that was left of the caller's deadline when the verdict was there."},
		{shed, Counter, "{request}", labels(cluster(), phase()),
			"Admissions for whose webhooks there was no place; each webhook's failure policy decided."},
		{bypasses, Counter, "{request}", labels(cluster(), phase(), named("rule")),
			"Admissions that passed without any webhook being asked, by the rule that let them."},
		{failOpen, Counter, "{call}", labels(cluster(), configuration(), webhook(), cause()),
			"Calls without a usable answer that did not block the request."},
	}
}

func webhookFamilies() []Family {
	return []Family{
		{webhookCalls, Counter, "{call}", labels(configuration(), webhook(), phase(), outcome()),
			"Invocations by what they came to. A reinvocation counts again. `abandoned`: another webhook's denial was answered first; `skipped`: not called, visibly."},
		{webhookDuration, Histogram, "s", labels(configuration(), webhook(), phase()),
			"Time from the beginning of a call to its answer, with retries and hedges. Webhooks that were not called are left out."},
		{webhookErrors, Counter, "{call}", labels(configuration(), webhook(), phase(), cause()),
			"Invocations that ended without a usable answer, or were refused, by cause, whatever came of it."},
		{webhookAttempts, Counter, "{attempt}", labels(configuration(), webhook(), closed("kind", "first", "retry", "hedge")),
			"HTTP tries."},
		{webhookRefused, Counter, "{attempt}", labels(configuration(), webhook()),
			"Retries and hedges that were not made because the budget of extra attempts was spent."},
		{webhookDisagreed, Counter, "{call}", labels(configuration(), webhook()),
			"Calls of which two attempts gave different verdicts."},
		{webhookMisread, Counter, "{call}", labels(configuration(), webhook()),
			"Calls whose webhook did not read the form that its own answers offer; reviews go to it in plain JSON for a while."},
		{webhookOperations, Counter, "{operation}", labels(configuration(), webhook()),
			"JSON patch operations that were applied."},
		{webhookInfo, ObservedGauge, "", labels(configuration(), webhook(), phase(), named("target")),
			"1 for every webhook that takes part, with where it is served: joins the families with `webhook` to those with `target`."},
		{webhooksPending, ObservedGauge, "{webhook}", nil,
			"New or changed webhooks that do not take part yet because nobody answers where they are to be served."},
	}
}

func targetFamilies() []Family {
	return []Family{
		{breakerState, ObservedGauge, "", labels(named("target"), named("endpoint")),
			"State of an endpoint's breaker as of now: 0 closed, 1 half-open or ramping, 2 open."},
		{endpoints, ObservedGauge, "{endpoint}", labels(named("target"), closed("state", "closed", "half_open", "ramping", "open")),
			"Addresses of a target by the state of their breakers. A target that resolves to nothing has 0 in every state."},
		{targetConnections, ObservedGauge, "{connection}", labels(named("target")),
			"Open connections to a target."},
		{targetsDraining, ObservedGauge, "{target}", nil,
			"Targets that have left the configuration and still have calls under way."},
	}
}

func processFamilies() []Family {
	return []Family{
		{connections, ObservedGauge, "{connection}", nil,
			"Open connections of callers."},
		{configReloads, ObservedCounter, "{reload}", labels(closed("result", "success", "failure")),
			"Changed configurations that were read. After a failure the last good one stays."},
		{configSuccess, ObservedGauge, "s", nil,
			"When the configuration that is served was loaded, in Unix seconds."},
		{configInfo, ObservedGauge, "", labels(named("hash")),
			"1, with the short hash of the configuration that is served: replicas must agree on it."},
		{configProblems, ObservedGauge, "{problem}", nil,
			"Problems of the configuration that was read last; above 0 what is served is older."},
		{certificateExpiry, ObservedGauge, "s", labels(closed("role", "serving", "client_ca", "webhook_client", "admin_serving", "admin_client_ca")),
			"When the first certificate of a role expires, in Unix seconds."},
		{namespacesStale, ObservedGauge, "", labels(cluster()),
			"1 where the cached namespaces of a cluster do not count and each is asked for, else 0. Clusters without namespaces of their own have no series."},
		{telemetryDropped, ObservedCounter, "{item}", labels(closed("signal", "logs", "decisions", "spans", "metrics")),
			"Log lines, decision log records, spans and pushes of metrics that were given up because their sink is slow or gone."},
		{buildInfo, ObservedGauge, "", labels(named("version"), named("revision"), named("goversion")),
			"1, with what was built."},
	}
}
