// SPDX-License-Identifier: Apache-2.0

package dashboards

import "slices"

const (
	fleetUID   = "dispatcher-fleet"
	fleetTitle = "Dispatcher: fleet"
)

// fleet answers: is anything wrong, and where do I look next?
func fleet() Dashboard {
	return Dashboard{
		UID: fleetUID, Title: fleetTitle,
		About:  "Is anything wrong, and where? Start here.",
		Vars:   []Variable{job(), webhookVariable()},
		Panels: slices.Concat(fleetRequests(), fleetConfiguration(), fleetRegistry()),
	}
}

func fleetRequests() []Panel {
	return []Panel{
		{Title: "Requests by decision", Unit: "reqps", Next: clusterUID,
			About:   "Admissions decided.",
			Queries: []Query{{`sum by (decision) (cluster:dispatcher_requests:rate5m{job=~"$job"})`, "{{decision}}"}}},
		{Title: "Requests by cluster", Unit: "reqps", Next: clusterUID,
			About:   "The ten busiest clusters.",
			Queries: []Query{{`topk(10, sum by (cluster) (cluster:dispatcher_requests:rate5m{job=~"$job"}))`, "{{cluster}}"}}},
		{Title: "Failing open", Unit: "cps", Next: webhookUID, Traces: failedOpenTraces,
			About:   "Calls without a usable answer that did not block, by webhook: policies that are not enforced.",
			Queries: []Query{{`sum by (job, configuration, webhook) (webhook:dispatcher_fail_open:rate5m{job=~"$job", webhook=~"$webhook"})`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherFailingOpen", Value: 0.01}},
		{Title: "Failing closed", Unit: "cps", Next: webhookUID, Traces: failedTraces,
			About:   "Calls without a usable answer that denied, by webhook: users who are blocked.",
			Queries: []Query{{`sum by (job, configuration, webhook) (webhook:dispatcher_webhook_calls:rate5m{job=~"$job", webhook=~"$webhook", outcome="failed"})`, "{{configuration}}/{{webhook}}"}},
			Limit:   Limit{Alert: "DispatcherFailingClosed", Value: 0.01}},
		{Title: "Shed by cluster", Unit: "reqps", Next: clusterUID,
			About:   "Admissions that found no place.",
			Queries: []Query{{`cluster:dispatcher_shed:rate5m{job=~"$job"}`, "{{cluster}}"}},
			Limit:   Limit{Alert: "DispatcherShedding", Value: 0.1}},
		{Title: "Turned away", Unit: "reqps",
			About:   "Calls that were refused before they were an admission, by the cluster that the credentials belong to. No name: nobody that is known.",
			Queries: []Query{{`cluster:dispatcher_refusals:rate5m{job=~"$job"}`, "{{cluster}} {{reason}}"}},
			Limit:   Limit{Alert: "DispatcherRefusing", Value: 0.01}},
		{Title: "Time left (p1)", Unit: "s", Next: webhookUID, Traces: slowTraces,
			About:   "One answer in a hundred leaves this much of the caller's deadline, or less.",
			Queries: []Query{{`phase:dispatcher_deadline_left_seconds:p01_5m{job=~"$job"}`, "{{phase}}"}},
			Limit:   Limit{Alert: "DispatcherDeadlineNear", Value: 0.25, Below: true}},
		{Title: "Endpoints that can be called", Unit: "short", Next: webhookUID,
			About: "By target, over all replicas.",
			Queries: []Query{{`sum by (job, target) (dispatcher_endpoints{job=~"$job", state=~"closed|ramping"}` +
				` and on (job, instance, target) dispatcher_webhook_info{job=~"$job", webhook=~"$webhook"})`, "{{target}}"}},
			Limit: Limit{Alert: "DispatcherTargetDown", Value: 1, Below: true}},
		{Title: "Replicas up", Unit: "short", Next: runtimeUID,
			About:   "1 for each that can be scraped.",
			Queries: []Query{{`up{job=~"$job"}`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherDown", Value: 1, Below: true}},
	}
}

func fleetConfiguration() []Panel {
	return []Panel{
		{Title: "Configuration hashes", Unit: "short",
			About:   "Replicas by what they serve. More than one line: they disagree.",
			Queries: []Query{{`count by (hash) (dispatcher_config_info{job=~"$job"})`, "{{hash}}"}}},
		{Title: "Different configurations", Unit: "short",
			About:   "How many are served at once.",
			Queries: []Query{{`count by (job) (count by (job, hash) (dispatcher_config_info{job=~"$job"}))`, "{{job}}"}},
			Limit:   Limit{Alert: "DispatcherConfigurationDiffers", Value: 1}},
		{Title: "Problems of the configuration", Unit: "short",
			About:   "Above 0 the last good configuration is served.",
			Queries: []Query{{`max by (job, instance) (dispatcher_config_problems{job=~"$job"})`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherConfigurationRefused", Value: 0}},
		{Title: "Age of a refused configuration's stand-in", Unit: "s",
			About:   "How old the served configuration is where the newest one is refused.",
			Queries: []Query{{`(time() - dispatcher_config_last_success_timestamp_seconds{job=~"$job"}) and on (job, instance) (dispatcher_config_problems{job=~"$job"} > 0)`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherConfigurationStale", Value: 14400}},
		{Title: "Reloads", Unit: "short",
			About:   "Changed configurations that were read, in an hour.",
			Queries: []Query{{`sum by (instance, result) (increase(dispatcher_config_reloads_total{job=~"$job"}[1h]))`, "{{instance}} {{result}}"}}},
		{Title: "Certificates: time left", Unit: "s",
			About:   "Until the first certificate of a role expires.",
			Queries: []Query{{`min by (job, role) (dispatcher_certificate_expiry_timestamp_seconds{job=~"$job"}) - time()`, "{{role}}"}},
			Limit:   Limit{Alert: "DispatcherCertificateExpires", Value: 604800, Below: true}},
	}
}

// fleetRegistry is about a registry in a Kubernetes API. Without one it is empty.
func fleetRegistry() []Panel {
	return []Panel{
		{Title: "Registry: generations", Unit: "short",
			About:   "Replicas by the generation of the registry that they serve. Two lines for longer than the spread: they disagree.",
			Queries: []Query{{`count by (generation) (dispatcher_mirror_info{job=~"$job"})`, "{{generation}}"}}},
		{Title: "Registry: held back", Unit: "short",
			About:   "1 where a generation has lost so much that somebody must confirm it.",
			Queries: []Query{{`max by (job, instance) (dispatcher_mirror_behind{job=~"$job", reason="held_back"})`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherGenerationHeldBack", Value: 0}},
		{Title: "Registry: quarantined or crashed", Unit: "short",
			About:   "1 where what the registry has ended the dispatcher or its mirror.",
			Queries: []Query{{`max by (job, instance) (dispatcher_mirror_behind{job=~"$job", reason=~"quarantined|crashed"})`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherGenerationQuarantined", Value: 0}},
		{Title: "Registry: older than the API", Unit: "short",
			About:   "1 where what is served is older than what was accepted, for whatever reason.",
			Queries: []Query{{`max by (job, instance, reason) (dispatcher_mirror_behind{job=~"$job"})`, "{{instance}} {{reason}}"}},
			Limit:   Limit{Alert: "DispatcherGenerationOld", Value: 0}},
		{Title: "Registry: refused objects", Unit: "short",
			About:   "Objects that are not served as they stand in the API.",
			Queries: []Query{{`max by (job, state) (dispatcher_mirror_objects{job=~"$job", state!="accepted"})`, "{{state}}"}},
			Limit:   Limit{Alert: "DispatcherObjectsRefused", Value: 0}},
		{Title: "Registry: API last heard", Unit: "s",
			About:   "How long ago the API answered the mirror.",
			Queries: []Query{{`time() - min by (job, instance) (dispatcher_mirror_api_heard_timestamp_seconds{job=~"$job"})`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherRegistryUnheard", Value: 600}},
	}
}
