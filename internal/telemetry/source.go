// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry"
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
