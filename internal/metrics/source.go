// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Source is what is looked at when somebody scrapes. Its functions are called by
// several goroutines; all are required.
type Source struct {
	Registry     *registry.Registry
	InFlight     func() map[string]int   // by cluster
	Connections  func() int              // of callers
	Aged         func() int64            // connections of callers that were closed for their age
	BodyBytes    func() map[string]int64 // by cluster
	Limits       Limits
	Certificates func() map[string]time.Time // when the first of a role expires
	Namespaces   func() map[string]bool      // by cluster: whether what is cached is stale
	Dropped      func() map[string]int64     // by signal
	Build        Build
}

// Limits are those that what is read may come to.
type Limits struct {
	Connections           int // of callers
	BodyBytes             int64
	InFlight              int // of all clusters together
	InFlightOfEachCluster int
}

// Build says what was built.
type Build struct{ Version, Revision, Go string }

// Watch has the families that are not recorded read from s. It is called once.
func (m *Metrics) Watch(s Source) error {
	o := observation{gauges: map[string]metric.Int64ObservableGauge{}, counters: map[string]metric.Int64ObservableCounter{}, source: s}
	var all []metric.Observable
	for _, f := range Families() {
		var err error
		switch f.Kind {
		case ObservedGauge:
			o.gauges[f.Name], err = m.meter.Int64ObservableGauge(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help))
			all = append(all, o.gauges[f.Name])
		case ObservedCounter:
			o.counters[f.Name], err = m.meter.Int64ObservableCounter(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help))
			all = append(all, o.counters[f.Name])
		}
		if err != nil {
			return fmt.Errorf("metric %s: %w", f.Name, err)
		}
	}
	_, err := m.meter.RegisterCallback(o.observe, all...)
	return err
}

// observation reads a Source.
type observation struct {
	gauges   map[string]metric.Int64ObservableGauge
	counters map[string]metric.Int64ObservableCounter
	source   Source
}

func (o observation) observe(_ context.Context, to metric.Observer) error {
	r := reading{observation: o, to: to}
	r.process()
	r.configuration()
	r.targets()
	return nil
}

// reading is one pass.
type reading struct {
	observation
	to metric.Observer
}

func (r reading) gauge(name string, value int64, kvs ...attribute.KeyValue) {
	r.to.ObserveInt64(r.gauges[name], value, metric.WithAttributes(kvs...))
}

func (r reading) count(name string, value int64, kvs ...attribute.KeyValue) {
	r.to.ObserveInt64(r.counters[name], value, metric.WithAttributes(kvs...))
}

func (r reading) process() {
	b := r.source.Build
	r.gauge(buildInfo, 1, attribute.String("version", b.Version), attribute.String("revision", b.Revision), attribute.String("goversion", b.Go))
	r.gauge(connections, int64(r.source.Connections()))
	r.gauge(connectionsLimit, int64(r.source.Limits.Connections))
	r.count(connectionsAged, r.source.Aged())
	r.gauge(inFlightLimit, int64(r.source.Limits.InFlight), attribute.String("scope", "all"))
	r.gauge(inFlightLimit, int64(r.source.Limits.InFlightOfEachCluster), attribute.String("scope", "cluster"))
	for name, n := range r.source.InFlight() {
		r.gauge(requestsInFlight, int64(n), attribute.String("cluster", name))
	}
	r.gauge(bodyBytesLimit, r.source.Limits.BodyBytes)
	for name, n := range r.source.BodyBytes() {
		r.gauge(bodyBytes, n, attribute.String("cluster", name))
	}
	for role, at := range r.source.Certificates() {
		r.gauge(certificateExpiry, at.Unix(), attribute.String("role", role))
	}
	for name, stale := range r.source.Namespaces() {
		r.gauge(namespacesStale, number(stale), attribute.String("cluster", name))
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
			found[servedWebhook{w.Configuration, w.Name, w.Target.URL()}] = true
		}
	}
	return found
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
