// SPDX-License-Identifier: Apache-2.0

package metrics

// The names of the families, as OpenTelemetry writes them.
const (
	requests          = "dispatcher.requests"
	requestDuration   = "dispatcher.request.duration"
	requestsInFlight  = "dispatcher.requests.in_flight"
	deadlineLeft      = "dispatcher.deadline_left"
	shed              = "dispatcher.shed"
	bypasses          = "dispatcher.bypass"
	failOpen          = "dispatcher.fail_open"
	outdated          = "dispatcher.registration.outdated"
	refusals          = "dispatcher.refusals"
	shadow            = "dispatcher.shadow"
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
	breakerClusters   = "dispatcher.breaker.clusters"
	breakerChanges    = "dispatcher.breaker.transitions"
	endpoints         = "dispatcher.endpoints"
	targetConnections = "dispatcher.target.connections"
	targetsDraining   = "dispatcher.targets.draining"
	connections       = "dispatcher.connections"
	connectionsLimit  = "dispatcher.connections.limit"
	connectionsAged   = "dispatcher.connections.aged"
	inFlightLimit     = "dispatcher.requests.in_flight.limit"
	bodyBytes         = "dispatcher.body.bytes"
	bodyBytesLimit    = "dispatcher.body.bytes.limit"
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
			"Admissions answered. `failed_open`: allowed although a webhook was not heard; `failed`: denied because a webhook was not heard; `refused`: denied by the dispatcher itself, whatever the failure policy; `unreadable`: denied because the review cannot be judged; `panicked`: denied because of a bug of the dispatcher."},
		{requestDuration, Histogram, "s", labels(cluster(), phase(), decision()),
			"Time from the decoded review to the verdict."},
		{requestsInFlight, ObservedGauge, "{request}", labels(cluster()),
			"Admissions for which webhooks are being called. A cluster without any has no series."},
		{inFlightLimit, ObservedGauge, "{request}", labels(closed("scope", "all", "cluster")),
			"How many there may be, of `all` clusters together and of one `cluster`."},
		{deadlineLeft, Histogram, "s", labels(phase()),
			"Time that was left of the caller's deadline when the verdict was there."},
		{shed, Counter, "{request}", labels(cluster(), phase()),
			"Admissions of which at least one call found no place, under `limits.admissions`, `admissionsPerCluster`, `reviewBytes` or `callsPerEndpoint`; each webhook's failure policy decided."},
		{bypasses, Counter, "{request}", labels(cluster(), phase(), named("rule")),
			"Admissions that passed without any webhook being asked, by the rule that let them."},
		{failOpen, Counter, "{call}", labels(cluster(), configuration(), webhook(), cause()),
			"Webhooks that should have had their say, did not, and did not block the request: under `failurePolicy: Ignore`, a `failOpen` rule or the mode Warn."},
		{outdated, Counter, "{request}", labels(cluster(), phase()),
			"Admissions on a path that is not one of those that `dispatcher registration` prints for the cluster now: the cluster applies an older registration. They are served."},
		{refusals, Counter, "{request}", labels(cluster(), reason()),
			"Requests and connections that were turned away before they were an admission: the caller's own failurePolicy decides those. `cluster` is who the credentials belong to, whatever the path says; empty where that is nobody."},
	}
}

func webhookFamilies() []Family {
	return []Family{
		{webhookCalls, Counter, "{call}", labels(configuration(), webhook(), phase(), outcome()),
			"Invocations by what they came to. A reinvocation counts again. `softened`: the mode Warn made a warning of a denial; `abandoned`: another webhook's denial was answered first; `skipped`: not called, visibly. The mode Shadow counts in `dispatcher_shadow_total`."},
		{shadow, Counter, "{call}", labels(configuration(), webhook(), phase(), shadowOutcome()),
			"Invocations in the mode Shadow by what they would have come to in the mode Enforce: `denied`, `refused` and `failed` would have blocked. `dropped`: not called, because `limits.shadowCalls` were under way."},
		{webhookDuration, Histogram, "s", labels(configuration(), webhook(), phase()),
			"Time from the beginning of a call to its answer, with retries and hedges; of a call that timed out, the time that it had. Left out are webhooks that were not called, and calls that were given up on because another webhook's denial was answered: those of a slow webhook beside one that denies (`abandoned` in `dispatcher_webhook_calls_total`)."},
		{webhookErrors, Counter, "{call}", labels(configuration(), webhook(), phase(), cause()),
			"Invocations that ended without a usable answer, or were refused, by cause, whatever came of it."},
		{webhookAttempts, Counter, "{attempt}", labels(configuration(), webhook(), kind()),
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
			"State of an endpoint's own circuit as of now, which concerns every cluster: 0 closed, 1 half-open or ramping, 2 open."},
		{breakerClusters, ObservedGauge, "{cluster}", labels(named("target"), named("endpoint")),
			"Clusters for which an endpoint is not called, for some resource at least, because its answers to their own reviews failed. The status page names them."},
		{breakerChanges, Counter, "{transition}", labels(named("target"), closed("circuit", endpointCircuit, clusterCircuit, resourceCircuit), state()),
			"Changes of the state of circuits, by the state that they entered: of an `endpoint` for every cluster, of a `cluster` for all its calls to an endpoint, of a `resource` for its calls about that. The log has each with cluster, resource and reason."},
		{endpoints, ObservedGauge, "{endpoint}", labels(named("target"), state()),
			"Addresses of a target by the state of their own circuits. A target that resolves to nothing has 0 in every state."},
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
		{connectionsLimit, ObservedGauge, "{connection}", nil,
			"How many there may be: `limits.connections`, but at most half of the descriptors that the process may open."},
		{connectionsAged, ObservedCounter, "{connection}", nil,
			"Connections of callers that were closed with an answer because of their age (`limits.connectionAge`)."},
		{bodyBytes, ObservedGauge, "{byte}", labels(named("cluster")),
			"Memory of requests' bodies: those being read, decompressed, or held for webhooks that are still called. A cluster without any has no series."},
		{bodyBytesLimit, ObservedGauge, "{byte}", nil,
			"How much there may be, of all clusters together: `limits.bodyBytes`. One cluster gets as much as it leaves free."},
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
