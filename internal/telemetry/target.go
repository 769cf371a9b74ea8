// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/transport"
)

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
