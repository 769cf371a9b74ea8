// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	webhookUID   = "dispatcher-webhook"
	webhookTitle = "Dispatcher: webhook"
)

// webhook answers: is this webhook slow or down, and whom does it hurt?
func webhook() Dashboard {
	return Dashboard{
		UID: webhookUID, Title: webhookTitle,
		About:  "Is a webhook slow or down, and whom does it hurt?",
		Vars:   []Variable{job(), clusterVariable(), webhookVariable()},
		Panels: append(webhookCalls(), webhookAttempts()...),
	}
}

func webhookCalls() []Panel {
	return []Panel{
		{Title: "Calls by outcome", Unit: "cps", Traces: webhookTraces,
			About:   "failed: denied because there was no usable answer; failed_open: allowed although; softened: denied in mode Warn; abandoned: another webhook had denied.",
			Queries: []Query{{`sum by (webhook, outcome) (webhook:dispatcher_webhook_calls:rate5m{job=~"$job", webhook=~"$webhook"})`, "{{webhook}} {{outcome}}"}}},
		{Title: "Call duration (p99)", Unit: "s", Traces: webhookTraces,
			About:   "With retries and hedges; without calls that were given up on beside a denial (abandoned).",
			Queries: []Query{{`webhook:dispatcher_webhook_call_duration_seconds:p99_5m{job=~"$job", webhook=~"$webhook"}`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherWebhookSlow", Value: 5}},
		{Title: "Call duration (median)", Unit: "s", Traces: webhookTraces,
			About:   "Far below p99: a few requests, or one endpoint, are slow.",
			Queries: []Query{{`histogram_quantile(0.5, sum by (configuration, webhook, le) (rate(dispatcher_webhook_call_duration_seconds_bucket{job=~"$job", webhook=~"$webhook"}[$__rate_interval])))`, "{{configuration}}/{{webhook}}"}}},
		{Title: "Errors by cause", Unit: "cps", Traces: webhookTraces,
			About:   "Why there was no usable answer, whatever came of it.",
			Queries: []Query{{`sum by (webhook, cause) (rate(dispatcher_webhook_errors_total{job=~"$job", webhook=~"$webhook"}[$__rate_interval]))`, "{{webhook}} {{cause}}"}}},
		{Title: "Failing closed", Unit: "cps", Traces: failedTraces,
			About:   "Calls without a usable answer that denied.",
			Queries: []Query{{`sum by (job, configuration, webhook) (webhook:dispatcher_webhook_calls:rate5m{job=~"$job", webhook=~"$webhook", outcome="failed"})`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherFailingClosed", Value: 0.01}},
		{Title: "Failing open", Unit: "cps", Traces: failedOpenTraces,
			About:   "Calls without a usable answer that did not block.",
			Queries: []Query{{`sum by (job, configuration, webhook) (webhook:dispatcher_fail_open:rate5m{job=~"$job", webhook=~"$webhook"})`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherFailingOpen", Value: 0.01}},
		{Title: "Failing open by cause", Unit: "cps", Next: clusterUID, Traces: failedOpenTraces,
			About:   "By the cluster that it hurts.",
			Queries: []Query{{`sum by (cluster, webhook, cause) (webhook:dispatcher_fail_open:rate5m{job=~"$job", cluster=~"$cluster", webhook=~"$webhook"})`, "{{cluster}} {{webhook}} {{cause}}"}}},
		{Title: "Mode Shadow by outcome", Unit: "cps",
			About:   "What calls would have come to in mode Enforce: denied, refused and failed would have blocked.",
			Queries: []Query{{`sum by (webhook, outcome) (webhook:dispatcher_shadow:rate5m{job=~"$job", webhook=~"$webhook"})`, "{{webhook}} {{outcome}}"}}},
		{Title: "Patch operations", Unit: "ops",
			About:   "JSON patch operations that were applied.",
			Queries: []Query{{`sum by (webhook) (rate(dispatcher_webhook_patch_operations_total{job=~"$job", webhook=~"$webhook"}[$__rate_interval]))`, "{{webhook}}"}}},
	}
}

func webhookAttempts() []Panel {
	return []Panel{
		{Title: "Attempts by kind", Unit: "cps", Traces: attemptTraces,
			About:   "HTTP tries.",
			Queries: []Query{{`sum by (webhook, kind) (rate(dispatcher_webhook_attempts_total{job=~"$job", webhook=~"$webhook"}[$__rate_interval]))`, "{{webhook}} {{kind}}"}}},
		{Title: "Extra attempts refused", Unit: "cps",
			About:   "Retries and hedges that were not made because the budget was spent.",
			Queries: []Query{{`webhook:dispatcher_webhook_budget_refused:rate5m{job=~"$job", webhook=~"$webhook"}`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherBudgetExhausted", Value: 0.1}},
		{Title: "Disagreements", Unit: "cps",
			About:   "Calls of which two attempts gave different verdicts: endpoints serve different policies.",
			Queries: []Query{{`sum by (webhook) (rate(dispatcher_webhook_disagreements_total{job=~"$job", webhook=~"$webhook"}[$__rate_interval]))`, "{{webhook}}"}}},
		{Title: "Pending webhooks", Unit: "short",
			About:   "New or changed ones that nobody answers for yet.",
			Queries: []Query{{`max by (job) (dispatcher_webhooks_pending{job=~"$job"})`, "{{job}}"}},
			Limit:   Limit{Alert: "DispatcherWebhookPending", Value: 0}},
		{Title: "Breakers", Unit: "short",
			About: "0 closed, 1 half-open or ramping, 2 open.",
			Queries: []Query{{`max by (job, target, endpoint) (dispatcher_breaker_state{job=~"$job"}` +
				` and on (job, instance, target) dispatcher_webhook_info{job=~"$job", webhook=~"$webhook"})`, "{{target}} {{endpoint}}"}},
			Limit: Limit{Alert: "DispatcherBreakerOpen", Value: 1}},
		{Title: "Clusters with an open circuit", Unit: "short",
			About: "Clusters for which an endpoint is not called, for some resource at least, because answers to their own reviews failed. The status page names them.",
			Queries: []Query{{`max by (job, target, endpoint) (dispatcher_breaker_clusters{job=~"$job"}` +
				` and on (job, instance, target) dispatcher_webhook_info{job=~"$job", webhook=~"$webhook"})`, "{{target}} {{endpoint}}"}},
			Limit: Limit{Alert: "DispatcherBreakerOpenForClusters", Value: 0}},
		{Title: "Connections to targets", Unit: "short", Next: runtimeUID,
			About: "Open, by target.",
			Queries: []Query{{`sum by (target) (dispatcher_target_connections{job=~"$job"}` +
				` and on (job, instance, target) dispatcher_webhook_info{job=~"$job", webhook=~"$webhook"})`, "{{target}}"}}},
	}
}
