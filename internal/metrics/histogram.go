// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/otlp"
)

// histograms are the series of a family that is a histogram. To record is a few atomic
// operations; the series are read when somebody collects.
type histograms struct {
	table[distribution]
	// converted records a second time for a collector that wants another form than
	// cumulative counts of these buckets; nil where none does.
	converted metric.Float64Histogram
}

// histogram records one series.
type histogram struct {
	*handle[distribution]
	labels []metric.RecordOption // for what is converted
}

// with returns what records the series with these labels.
func (h *histograms) with(labels ...attribute.KeyValue) histogram {
	to := histogram{handle: h.table.with(labels...)}
	if h.converted != nil {
		to.labels = []metric.RecordOption{metric.WithAttributeSet(to.set)}
	}
	return to
}

// moment is when something was recorded, and the trace that it belongs to.
type moment struct {
	at   time.Time
	span trace.SpanContext
}

// record adds a duration to a series.
func (h *histograms) record(ctx context.Context, to histogram, d time.Duration, m *moment) {
	value := d.Seconds()
	to.point().add(value, m)
	if h.converted != nil {
		h.converted.Record(ctx, value, to.labels...)
	}
}

// distribution is what one series has recorded.
type distribution struct {
	sum      atomic.Uint64 // the bits of a float64
	min, max extreme       // max: of the values with their signs changed
	buckets  [len(bounds) + 1]struct {
		n    atomic.Uint64
		last atomic.Pointer[exemplar] // the last that was sampled
	}
}

// exemplar is one value of a trace that was sampled.
type exemplar struct {
	value float64
	at    time.Time
	trace trace.TraceID
	span  trace.SpanID
}

// add adds a value. The bucket comes last, so that whoever reads the buckets first finds
// every value that they count in the rest, too.
func (d *distribution) add(value float64, m *moment) {
	for {
		old := d.sum.Load()
		if d.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+value)) {
			break
		}
	}
	d.min.offer(value)
	d.max.offer(-value)
	b := &d.buckets[sort.SearchFloat64s(bounds[:], value)]
	if m.span.IsSampled() {
		b.last.Store(&exemplar{value, m.at, m.span.TraceID(), m.span.SpanID()})
	}
	b.n.Add(1)
}

// extreme is the least of the values offered, as the inverted bits of a float64: its zero
// value is not a number, which no value is above.
type extreme struct{ bits atomic.Uint64 }

func (e *extreme) offer(value float64) {
	for {
		old := e.bits.Load()
		if math.Float64frombits(^old) <= value || e.bits.CompareAndSwap(old, ^math.Float64bits(value)) {
			return
		}
	}
}

func (e *extreme) load() float64 { return math.Float64frombits(^e.bits.Load()) }

// collect returns the series that have recorded something as points.
func (h *histograms) collect(start, now time.Time) []metricdata.HistogramDataPoint[float64] {
	var points []metricdata.HistogramDataPoint[float64]
	bounds := slices.Clone(bounds[:])
	for labels, d := range h.all() {
		p := metricdata.HistogramDataPoint[float64]{Attributes: labels, StartTime: start, Time: now, Bounds: bounds}
		if d.read(&p); p.Count > 0 {
			points = append(points, p)
		}
	}
	return points
}

// read fills in a point. Its count is the sum of its buckets, whatever is recorded
// meanwhile.
func (d *distribution) read(p *metricdata.HistogramDataPoint[float64]) {
	p.BucketCounts = make([]uint64, len(d.buckets))
	for i := range d.buckets {
		p.BucketCounts[i] = d.buckets[i].n.Load()
		p.Count += p.BucketCounts[i]
		if e := d.buckets[i].last.Load(); e != nil {
			p.Exemplars = append(p.Exemplars, metricdata.Exemplar[float64]{Value: e.value, Time: e.at, TraceID: e.trace[:], SpanID: e.span[:]})
		}
	}
	p.Sum = math.Float64frombits(d.sum.Load())
	p.Min, p.Max = metricdata.NewExtrema(d.min.load()), metricdata.NewExtrema(-d.max.load())
}

// producer gives the histograms to a reader, as cumulative counts since start.
type producer struct {
	families []Family
	start    time.Time
}

// Produce implements sdk.Producer.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	var all []metricdata.Metrics
	now := time.Now()
	for _, f := range p.families {
		h, ok := f.into.(*histograms)
		if !ok {
			continue
		}
		if points := h.collect(p.start, now); len(points) > 0 {
			all = append(all, metricdata.Metrics{Name: f.Name, Description: f.Help, Unit: f.Unit,
				Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: otlp.Scope}, Metrics: all}}, nil
}
