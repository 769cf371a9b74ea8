// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	runtimeUID   = "dispatcher-runtime"
	runtimeTitle = "Dispatcher: runtime"
)

// runtime answers: does this replica have what it needs?
func runtime() Dashboard {
	return Dashboard{
		UID: runtimeUID, Title: runtimeTitle,
		About:  "Does a replica have what it needs?",
		Vars:   []Variable{job(), instanceVariable()},
		Panels: append(runtimeProcess(), runtimeTelemetry()...),
	}
}

func runtimeProcess() []Panel {
	return []Panel{
		{Title: "CPU", Unit: "short",
			About:   "Processors in use.",
			Queries: []Query{{`rate(process_cpu_seconds_total{job=~"$job", instance=~"$instance"}[$__rate_interval])`, "{{instance}}"}}},
		{Title: "Memory", Unit: "bytes",
			About:   "Resident.",
			Queries: []Query{{`process_resident_memory_bytes{job=~"$job", instance=~"$instance"}`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherMemoryHigh", Value: 2147483648}},
		{Title: "Heap", Unit: "bytes",
			About:   "Go's heap in use. A slope without load is a leak.",
			Queries: []Query{{`go_memstats_heap_inuse_bytes{job=~"$job", instance=~"$instance"}`, "{{instance}}"}}},
		{Title: "Goroutines", Unit: "short",
			About:   "A slope without load is a leak.",
			Queries: []Query{{`go_goroutines{job=~"$job", instance=~"$instance"}`, "{{instance}}"}}},
		{Title: "Garbage collection (longest pause)", Unit: "s",
			About:   "Of the last collections. OpenMetrics writes 1.0 where the text format has 1.",
			Queries: []Query{{`go_gc_duration_seconds{job=~"$job", instance=~"$instance", quantile=~"1|1.0"}`, "{{instance}}"}}},
		{Title: "Connections", Unit: "percentunit",
			About:   "Of callers, of those that there may be.",
			Queries: []Query{{`dispatcher_connections{job=~"$job", instance=~"$instance"} / dispatcher_connections_limit{job=~"$job", instance=~"$instance"}`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherConnectionsHigh", Value: 0.8}},
		{Title: "File descriptors", Unit: "percentunit",
			About:   "Of those that the process may open.",
			Queries: []Query{{`process_open_fds{job=~"$job", instance=~"$instance"} / process_max_fds{job=~"$job", instance=~"$instance"}`, "{{instance}}"}},
			Limit:   Limit{Alert: "DispatcherDescriptorsHigh", Value: 0.8}},
		{Title: "Connections to targets", Unit: "short", Next: webhookUID,
			About:   "Open, by replica.",
			Queries: []Query{{`sum by (instance) (dispatcher_target_connections{job=~"$job", instance=~"$instance"})`, "{{instance}}"}}},
	}
}

func runtimeTelemetry() []Panel {
	return []Panel{
		{Title: "Targets draining", Unit: "short",
			About:   "Out of the configuration, with calls under way.",
			Queries: []Query{{`dispatcher_targets_draining{job=~"$job", instance=~"$instance"}`, "{{instance}}"}}},
		{Title: "Telemetry dropped", Unit: "cps",
			About:   "Log lines, decisions and spans that were given up.",
			Queries: []Query{{`sum by (job, instance, signal) (rate(dispatcher_telemetry_dropped_total{job=~"$job", instance=~"$instance"}[5m]))`, "{{instance}} {{signal}}"}},
			Limit:   Limit{Alert: "DispatcherTelemetryDropped", Value: 0}},
		{Title: "Series beyond the limit", Unit: "short",
			About:   "Families that are full: their series say less than they should.",
			Queries: []Query{{`count by (job) ({__name__=~"dispatcher_.+", otel_metric_overflow="true", job=~"$job"})`, "{{job}}"}},
			Limit:   Limit{Alert: "DispatcherSeriesOverflow", Value: 0}},
		{Title: "Versions", Unit: "short", Next: fleetUID,
			About:   "Replicas by what was built.",
			Queries: []Query{{`count by (version, revision, goversion) (dispatcher_build_info{job=~"$job"})`, "{{version}} {{revision}} {{goversion}}"}}},
		{Title: "Decisions by version", Unit: "reqps", Next: fleetUID,
			About: "Admissions decided, for each replica of a version: a canary that decides otherwise than the rest stands out.",
			Queries: []Query{{`sum by (version, decision) (rate(dispatcher_requests_total{job=~"$job"}[5m]) * on (job, instance) group_left (version) dispatcher_build_info)` +
				` / on (version) group_left () count by (version) (dispatcher_build_info{job=~"$job"})`, "{{version}} {{decision}}"}}},
		{Title: "Replicas known", Unit: "short",
			About:   "How many replicas each one counts with.",
			Queries: []Query{{`dispatcher_fleet_replicas{job=~"$job", instance=~"$instance"}`, "{{instance}}"}}},
	}
}
