// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The families that are read when somebody scrapes.
const (
	breakerState      = "dispatcher.breaker.state"
	breakerClusters   = "dispatcher.breaker.clusters"
	endpoints         = "dispatcher.endpoints"
	failingEndpoints  = "dispatcher.endpoints.failing"
	targetConnections = "dispatcher.target.connections"
	targetsDraining   = "dispatcher.targets.draining"
)

// targetMetrics are the instruments of where webhooks are served.
type targetMetrics struct {
	transitions counters
}

func (m *targetMetrics) families() []Family {
	return []Family{
		{breakerState, ObservedGauge, "", labels(named("target"), named("endpoint")),
			"State of an endpoint's own circuit as of now, which concerns every cluster: 0 closed, 1 half-open or ramping, 2 open.", nil},
		{breakerClusters, ObservedGauge, "{cluster}", labels(named("target"), named("endpoint")),
			"Clusters for which an endpoint is not called, for some resource at least, because its answers to their own reviews failed. The status page names them.", nil},
		{"dispatcher.breaker.transitions", Counter, "{transition}", labels(named("target"), closed("circuit", endpointCircuit, clusterCircuit, resourceCircuit), state()),
			"Changes of the state of circuits, by the state that they entered: of an `endpoint` for every cluster, of a `cluster` for all its calls to an endpoint, of a `resource` for its calls about that. The log has each with cluster, resource and reason.", &m.transitions},
		{endpoints, ObservedGauge, "{endpoint}", labels(named("target"), state()),
			"Addresses of a target by the state of their own circuits. A target that resolves to nothing has 0 in every state.", nil},
		{failingEndpoints, ObservedGauge, "{endpoint}", labels(named("target")),
			"Addresses of a target of which the last attempt or probe failed, whatever their circuits let through. Every target is probed when the process starts; a probe changes no circuit.", nil},
		{targetConnections, ObservedGauge, "{connection}", labels(named("target")),
			"Open connections to a target.", nil},
		{targetsDraining, ObservedGauge, "{target}", nil,
			"Targets that have left the configuration and still have calls under way.", nil},
	}
}

// CircuitChanged counts a change of a circuit of an endpoint of the target.
func (m *Metrics) CircuitChanged(target string, c breaker.Change) {
	circuit := resourceCircuit
	switch {
	case c.Cluster == "":
		circuit = endpointCircuit
	case c.Resource == "":
		circuit = clusterCircuit
	}
	m.transitions.with(attribute.String("target", target), attribute.String("circuit", circuit), attribute.String("state", stateName(c.To))).point().Add(1)
}

// targets reads what there is to say of each Target. Those that share a URL, with
// other credentials for example, are one: the worst state counts.
func (r reading) targets() {
	draining := r.source.Registry.Draining()
	r.gauge(targetsDraining, int64(len(draining)))
	byURL := map[string]*targetReading{}
	for _, t := range append(r.source.Registry.Targets(), draining...) {
		sum := byURL[t.URL()]
		if sum == nil {
			sum = &targetReading{breakers: map[string]breakerReading{}}
			byURL[t.URL()] = sum
		}
		sum.add(t)
	}
	for url, sum := range byURL {
		r.target(attribute.String("target", url), sum)
	}
}

func (r reading) target(url attribute.KeyValue, sum *targetReading) {
	r.gauge(targetConnections, sum.connections, url)
	r.gauge(failingEndpoints, sum.failing, url)
	for s, n := range sum.states {
		r.gauge(endpoints, n, url, attribute.String("state", stateName(breaker.State(s))))
	}
	for address, worst := range sum.breakers {
		endpoint := attribute.String("endpoint", address)
		r.gauge(breakerState, worst.state, url, endpoint)
		r.gauge(breakerClusters, worst.clusters, url, endpoint)
	}
}

// targetReading is the sum of the Targets of one URL.
type targetReading struct {
	connections int64
	failing     int64
	states      [breaker.Ramping + 1]int64
	breakers    map[string]breakerReading // by address
}

// breakerReading is the worst of an address.
type breakerReading struct{ state, clusters int64 }

func (s *targetReading) add(t *transport.Target) {
	s.connections += int64(t.Connections())
	for _, e := range t.Endpoints() {
		health, address := e.Health(), e.Address().String()
		s.states[health.State]++
		switch e.Condition(health.State) {
		case transport.Failing, transport.Unreachable, transport.Ejected:
			s.failing++
		}
		clusters := map[string]bool{}
		for _, c := range health.Circuits {
			clusters[c.Cluster] = true
		}
		was := s.breakers[address]
		s.breakers[address] = breakerReading{max(was.state, severity(health.State)), max(was.clusters, int64(len(clusters)))}
	}
}

// severity is the value of a breaker's state: what lets some through is between.
func severity(s breaker.State) int64 {
	switch s {
	case breaker.Closed:
		return 0
	case breaker.Open:
		return 2
	}
	return 1
}

// stateName spells a state as a label's value.
func stateName(s breaker.State) string {
	if s == breaker.HalfOpen {
		return "half_open"
	}
	return s.String()
}
