// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
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
	Limits       func() Limits
	Replicas     func() int                  // that share the calls, this one included
	Certificates func() map[string]time.Time // when the first of a role expires
	Namespaces   func() map[string]bool      // by cluster: whether what is cached is stale
	Objects      func() []Objects            // of clusters
	Mirror       func() *mirrorstatus.Mirror // nil: the configuration comes from none
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

// Objects is what is known of the objects of one resource of a cluster.
type Objects struct {
	Cluster, Resource string
	Stale             bool
	Cached, Bytes     int
	Requests          uint64 // since it is watched: of single objects, and lists
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
	r.mirror()
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
