// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// The families that are read when somebody scrapes.
const (
	connections       = "dispatcher.connections"
	connectionsLimit  = "dispatcher.connections.limit"
	connectionsAged   = "dispatcher.connections.aged"
	bodyBytes         = "dispatcher.body.bytes"
	bodyBytesLimit    = "dispatcher.body.bytes.limit"
	configReloads     = "dispatcher.config.reloads"
	configSuccess     = "dispatcher.config.last_success.timestamp"
	configInfo        = "dispatcher.config.info"
	configProblems    = "dispatcher.config.problems"
	certificateExpiry = "dispatcher.certificate.expiry.timestamp"
	namespacesStale   = "dispatcher.namespaces.stale"
	objectsStale      = "dispatcher.objects.stale"
	objectsCached     = "dispatcher.objects.cached"
	objectsBytes      = "dispatcher.objects.bytes"
	objectsRequests   = "dispatcher.objects.requests"
	fleetReplicas     = "dispatcher.fleet.replicas"
	telemetryDropped  = "dispatcher.telemetry.dropped"
	buildInfo         = "dispatcher.build.info"
)

func processFamilies() []Family {
	return []Family{
		{connections, ObservedGauge, "{connection}", nil,
			"Open connections of callers.", nil},
		{connectionsLimit, ObservedGauge, "{connection}", nil,
			"How many there may be: `limits.connections`, but at most half of the descriptors that the process may open.", nil},
		{connectionsAged, ObservedCounter, "{connection}", nil,
			"Connections of callers that were closed with an answer because of their age (`limits.connectionAge`), or because replicas have joined.", nil},
		{bodyBytes, ObservedGauge, "{byte}", labels(named("cluster")),
			"Memory of requests' bodies: those being read, decompressed, or held for webhooks that are still called. A cluster without any has no series.", nil},
		{bodyBytesLimit, ObservedGauge, "{byte}", nil,
			"How much there may be, of all clusters together: `limits.bodyBytes`. One cluster gets as much as it leaves free.", nil},
		{configReloads, ObservedCounter, "{reload}", labels(closed("result", "success", "failure")),
			"Changed configurations that were read. After a failure the last good one stays.", nil},
		{configSuccess, ObservedGauge, "s", nil,
			"When the configuration that is served was loaded, in Unix seconds.", nil},
		{configInfo, ObservedGauge, "", labels(named("hash")),
			"1, with the short hash of the configuration that is served: replicas must agree on it.", nil},
		{configProblems, ObservedGauge, "{problem}", nil,
			"Problems of the configuration that was read last; above 0 what is served is older.", nil},
		{certificateExpiry, ObservedGauge, "s", labels(closed("role", "serving", "client_ca", "webhook_client", "admin_serving", "admin_client_ca")),
			"When the first certificate of a role expires, in Unix seconds.", nil},
		{namespacesStale, ObservedGauge, "", labels(cluster()),
			"1 where the cached namespaces of a cluster do not count and each is asked for, else 0. Clusters without namespaces of their own have no series.", nil},
		{objectsStale, ObservedGauge, "", labels(cluster(), named("resource")),
			"1 where the cached objects of a resource of a cluster do not count and each is asked for, else 0. There are series for what plugins and policies read.", nil},
		{objectsCached, ObservedGauge, "{object}", labels(cluster(), named("resource")),
			"Objects of a resource of a cluster that are cached.", nil},
		{objectsBytes, ObservedGauge, "{byte}", labels(cluster(), named("resource")),
			"Memory that they count as, with what they may be decoded into: at most 16 MiB of a resource of a cluster.", nil},
		{objectsRequests, ObservedCounter, "{request}", labels(cluster(), named("resource")),
			"Requests to the APIs of clusters for objects that were not cached, or did not count. It begins anew with the watch.", nil},
		{fleetReplicas, ObservedGauge, "{replica}", nil,
			"Replicas that share the calls of the clusters, as far as this one knows (`fleet`); 1 where nobody says.", nil},
		{telemetryDropped, ObservedCounter, "{item}", labels(closed("signal", "logs", "decisions", "spans", "metrics")),
			"Log lines, decision log records, spans and pushes of metrics that were given up because their sink is slow or gone.", nil},
		{buildInfo, ObservedGauge, "", labels(named("version"), named("revision"), named("goversion")),
			"1, with what was built.", nil},
	}
}

func (r reading) process() {
	b := r.source.Build
	r.gauge(buildInfo, 1, attribute.String("version", b.Version), attribute.String("revision", b.Revision), attribute.String("goversion", b.Go))
	limits := r.source.Limits()
	r.gauge(fleetReplicas, int64(r.source.Replicas()))
	r.gauge(connections, int64(r.source.Connections()))
	r.gauge(connectionsLimit, int64(limits.Connections))
	r.count(connectionsAged, r.source.Aged())
	r.gauge(inFlightLimit, int64(limits.InFlight), attribute.String("scope", "all"))
	r.gauge(inFlightLimit, int64(limits.InFlightOfEachCluster), attribute.String("scope", "cluster"))
	for name, n := range r.source.InFlight() {
		r.gauge(requestsInFlight, int64(n), attribute.String("cluster", name))
	}
	r.gauge(bodyBytesLimit, limits.BodyBytes)
	for name, n := range r.source.BodyBytes() {
		r.gauge(bodyBytes, n, attribute.String("cluster", name))
	}
	for role, at := range r.source.Certificates() {
		r.gauge(certificateExpiry, at.Unix(), attribute.String("role", role))
	}
	for name, stale := range r.source.Namespaces() {
		r.gauge(namespacesStale, number(stale), attribute.String("cluster", name))
	}
	for _, o := range r.source.Objects() {
		of := []attribute.KeyValue{attribute.String("cluster", o.Cluster), attribute.String("resource", o.Resource)}
		r.gauge(objectsStale, number(o.Stale), of...)
		r.gauge(objectsCached, int64(o.Cached), of...)
		r.gauge(objectsBytes, int64(o.Bytes), of...)
		r.count(objectsRequests, int64(o.Requests), of...)
	}
	for signal, n := range r.source.Dropped() {
		r.count(telemetryDropped, n, attribute.String("signal", signal))
	}
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (r reading) configuration() {
	loads := r.source.Registry.Loads()
	r.count(configReloads, loads.Good, attribute.String("result", "success"))
	r.count(configReloads, loads.Bad, attribute.String("result", "failure"))
	r.gauge(configProblems, int64(len(r.source.Registry.Problems())))
	s := r.source.Registry.Snapshot()
	if s == nil {
		return
	}
	r.gauge(configSuccess, loads.Last.Unix())
	r.gauge(configInfo, 1, attribute.String("hash", s.ShortHash()))
	r.gauge(webhooksPending, int64(len(s.Pending)))
	for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
		for w := range webhooksOf(s, phase) {
			r.gauge(webhookInfo, 1, attribute.String("configuration", w.configuration), attribute.String("webhook", w.name),
				phaseAttr(phase), attribute.String("target", w.target))
		}
	}
}

// servedWebhook is a webhook with where it is served.
type servedWebhook struct{ configuration, name, target string }

// webhooksOf returns the webhooks of a phase, each once for all clusters.
func webhooksOf(s *registry.Snapshot, p chain.Phase) map[servedWebhook]bool {
	found, seen := map[servedWebhook]bool{}, map[*chain.Chain]bool{}
	for _, c := range s.Clusters {
		chain := c.Chain(p)
		if seen[chain] {
			continue
		}
		seen[chain] = true
		for _, w := range chain.Webhooks {
			at := "" // a function of this process
			if located, ok := w.Hook.(hook.Located); ok {
				at = located.Where()
			}
			found[servedWebhook{w.Configuration, w.Name, at}] = true
		}
	}
	return found
}
