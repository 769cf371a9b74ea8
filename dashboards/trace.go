// SPDX-License-Identifier: Apache-2.0

package dashboards

// What links from panels search for, in TraceQL.
const (
	// clusterTraces finds the admissions of the clusters that are chosen.
	clusterTraces = `{ span.k8s.cluster.name =~ "${cluster:pipe}" }`
	// slowTraces finds admissions that took long, whoever asked.
	slowTraces = `{ span.admission.phase =~ "mutate|validate" && duration > 1s }`
	// webhookTraces finds the calls of the webhooks that are chosen, the next two
	// those without a usable answer.
	webhookTraces    = `{ span.admission.webhook =~ "${webhook:pipe}" }`
	failedTraces     = `{ span.admission.webhook =~ "${webhook:pipe}" && span.admission.outcome = "failed" }`
	failedOpenTraces = `{ span.admission.webhook =~ "${webhook:pipe}" && span.admission.outcome = "failed_open" }`
	// attemptTraces finds calls of them that needed more than one attempt.
	attemptTraces = `{ span.admission.webhook =~ "${webhook:pipe}" } > { span.admission.attempt.kind =~ "retry|hedge" }`
)
