// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	clusterUID   = "dispatcher-cluster"
	clusterTitle = "Dispatcher: cluster"
)

// cluster answers: what happens to the requests of this cluster?
func cluster() Dashboard {
	return Dashboard{
		UID: clusterUID, Title: clusterTitle,
		About: "What happens to the requests of a cluster?",
		Vars:  []Variable{job(), clusterVariable(), webhookVariable()},
		Panels: []Panel{
			{Title: "Decisions", Unit: "reqps", Traces: clusterTraces,
				About:   "Admissions decided. failed: denied because a webhook was not heard; failed_open: allowed although; unreadable: the review cannot be judged.",
				Queries: []Query{{`sum by (cluster, decision) (cluster:dispatcher_requests:rate5m{job=~"$job", cluster=~"$cluster"})`, "{{cluster}} {{decision}}"}}},
			{Title: "Admission duration (p99)", Unit: "s", Traces: clusterTraces,
				About:   "From the decoded review to the verdict.",
				Queries: []Query{{`cluster:dispatcher_request_duration_seconds:p99_5m{job=~"$job", cluster=~"$cluster"}`, "{{cluster}} {{phase}}"}}},
			{Title: "In flight", Unit: "short",
				About: "Admissions for which webhooks are being called; limits.admissionsPerCluster bounds them in each replica.",
				// A cluster without any has no series.
				Queries: []Query{{`sum by (cluster, instance) (dispatcher_requests_in_flight{job=~"$job", cluster=~"$cluster"})` +
					` or 0 * sum by (cluster, instance) (dispatcher_requests_total{job=~"$job", cluster=~"$cluster"})`, "{{cluster}} {{instance}}"}}},
			{Title: "In flight, of the limit", Unit: "percentunit",
				About: "At the limit further admissions wait for 10 ms and are then shed.",
				Queries: []Query{{`(sum by (job, cluster, instance) (dispatcher_requests_in_flight{job=~"$job", cluster=~"$cluster"})` +
					` or 0 * sum by (job, cluster, instance) (dispatcher_requests_total{job=~"$job", cluster=~"$cluster"})) / on (job, instance) group_left () dispatcher_requests_in_flight_limit{job=~"$job", scope="cluster"}`, "{{cluster}} {{instance}}"}}},
			{Title: "Turned away", Unit: "reqps",
				About:   "Calls that were refused before they were an admission, by reason.",
				Queries: []Query{{`cluster:dispatcher_refusals:rate5m{job=~"$job", cluster=~"$cluster"}`, "{{cluster}} {{reason}}"}},
				Limit:   Limit{Alert: "DispatcherRefusing", Value: 0.01}},
			{Title: "Shed", Unit: "reqps", Next: fleetUID,
				About:   "Admissions that found no place.",
				Queries: []Query{{`cluster:dispatcher_shed:rate5m{job=~"$job", cluster=~"$cluster"}`, "{{cluster}}"}},
				Limit:   Limit{Alert: "DispatcherShedding", Value: 0.1}},
			{Title: "Failing open by webhook", Unit: "cps", Next: webhookUID, Traces: clusterTraces,
				About:   "Calls without a usable answer that did not block.",
				Queries: []Query{{`sum by (cluster, webhook, cause) (webhook:dispatcher_fail_open:rate5m{job=~"$job", cluster=~"$cluster", webhook=~"$webhook"})`, "{{cluster}} {{webhook}} {{cause}}"}}},
			{Title: "Bypassed by rule", Unit: "reqps",
				About:   "Admissions that passed without any webhook being asked.",
				Queries: []Query{{`sum by (cluster, rule) (rate(dispatcher_bypass_total{job=~"$job", cluster=~"$cluster"}[$__rate_interval]))`, "{{cluster}} {{rule}}"}}},
			{Title: "Requests in 15 minutes", Unit: "short",
				About:   "A cluster that falls silent may have lost its registration; the alert DispatcherNoTraffic watches that.",
				Queries: []Query{{`sum by (job, cluster) (increase(dispatcher_requests_total{job=~"$job", cluster=~"$cluster"}[15m]))`, "{{cluster}}"}}},
			{Title: "Stale namespaces", Unit: "short",
				About:   "1 where the cached namespaces do not count.",
				Queries: []Query{{`max by (job, cluster) (dispatcher_namespaces_stale{job=~"$job", cluster=~"$cluster"})`, "{{cluster}}"}},
				Limit:   Limit{Alert: "DispatcherNamespacesStale", Value: 0}},
		},
	}
}
