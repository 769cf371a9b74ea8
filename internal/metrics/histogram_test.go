// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
)

// sampledSpan returns a span context that is sampled, or not.
func sampledSpan(n byte, flags trace.TraceFlags) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, n}, SpanID: trace.SpanID{2, n}, TraceFlags: flags})
}

// The histograms are what the SDK makes of the same values: it is the oracle for everything
// but its choice of exemplars.
func TestHistogramsAreThoseOfTheSDK(t *testing.T) {
	reader := sdk.NewManualReader()
	family := Family{"dispatcher.test.duration", Histogram, "s", nil, "Help.", &histograms{}}
	theirs, err := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter(otlp.Scope).Float64Histogram(family.Name, metric.WithUnit(family.Unit),
		metric.WithDescription(family.Help), metric.WithExplicitBucketBoundaries(bounds[:]...))
	if err != nil {
		t.Fatal(err)
	}
	ours, random := family.into.(*histograms), rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		labels := []attribute.KeyValue{attribute.Int("series", i%3)}
		var d time.Duration
		switch bound := bounds[random.IntN(len(bounds))]; random.IntN(4) {
		case 0:
			d = time.Duration(bound * 1e9) // what is as long as a bound is below it
		case 1:
			d = time.Duration(bound*1e9) + 1
		case 2:
			d = -time.Duration(random.Int64N(1e9)) // a verdict that was late
		default:
			d = time.Duration(random.ExpFloat64() * 1e9)
		}
		ours.record(t.Context(), ours.with(labels...), d, &moment{})
		theirs.Record(t.Context(), d.Seconds(), metric.WithAttributes(labels...))
	}
	var want metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	got, err := (&producer{families: []Family{family}}).Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	options := cmp.Options{
		cmpopts.IgnoreFields(metricdata.HistogramDataPoint[float64]{}, "StartTime", "Time"), cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-12, 0),
		cmp.Comparer(func(a, b attribute.Set) bool { return a.Equals(&b) }),
		cmp.Comparer(func(a, b metricdata.Extrema[float64]) bool { return a == b }),
		cmpopts.SortSlices(func(a, b metricdata.HistogramDataPoint[float64]) bool { return series0(a) < series0(b) }),
	}
	if diff := cmp.Diff(want.ScopeMetrics, got, options); diff != "" {
		t.Errorf("-SDK +ours:\n%s", diff)
	}
}

func series0(p metricdata.HistogramDataPoint[float64]) int64 {
	v, _ := p.Attributes.Value("series")
	return v.AsInt64()
}

// What is collected while others record agrees with itself, and no value is lost.
func TestCollectWhileRecording(t *testing.T) {
	const recorders, each, seconds = 4, 5000, 0.25
	h := &histograms{}
	p := &producer{families: []Family{{Name: "a", into: h}}}
	var running atomic.Int64
	var group sync.WaitGroup
	running.Store(recorders)
	for i := range recorders {
		group.Go(func() {
			defer running.Add(-1)
			for n := range each {
				span := sampledSpan(byte(i+1), trace.TraceFlags(n%2))
				h.record(t.Context(), h.with(), time.Duration(seconds*float64(1+n%2)*1e9), &moment{span: span})
			}
		})
	}
	var before uint64
	for more := true; more; {
		more = running.Load() > 0
		for _, point := range points(t, p) {
			var sum uint64
			for _, n := range point.BucketCounts {
				sum += n
			}
			if sum != point.Count || point.Count < before {
				t.Fatalf("%d in buckets, count %d after %d", sum, point.Count, before)
			}
			before = point.Count
			if least := seconds * float64(point.Count); point.Sum < least {
				t.Fatalf("the sum %g does not have all of %d values", point.Sum, point.Count)
			}
			if low, _ := point.Min.Value(); low != seconds && low != 2*seconds {
				t.Fatalf("min %g", low)
			}
		}
	}
	group.Wait()
	last := points(t, p)[0]
	if last.Count != recorders*each || last.Sum != recorders*each*seconds*1.5 {
		t.Errorf("%d with the sum %g", last.Count, last.Sum)
	}
}

// points collects the only histogram.
func points(t *testing.T, p *producer) []metricdata.HistogramDataPoint[float64] {
	t.Helper()
	all, err := p.Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return all[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints
}

// A bucket has the last value of a sampled trace as exemplar, and none of others.
func TestExemplars(t *testing.T) {
	h, at := &histograms{}, time.Unix(1700000000, 0)
	for _, r := range []struct {
		d    time.Duration
		span trace.SpanContext
	}{
		{time.Millisecond, sampledSpan(1, trace.FlagsSampled)},
		{time.Microsecond, sampledSpan(2, trace.FlagsSampled)},
		{2 * time.Microsecond, sampledSpan(3, 0)},
		{time.Second, sampledSpan(4, trace.FlagsSampled)},
		{2 * time.Second, trace.SpanContext{}},
	} {
		h.record(t.Context(), h.with(), r.d, &moment{at, r.span})
	}
	want := []metricdata.Exemplar[float64]{
		{Time: at, Value: 1e-6, TraceID: append([]byte{1, 2}, make([]byte, 14)...), SpanID: append([]byte{2, 2}, make([]byte, 6)...)},
		{Time: at, Value: 1, TraceID: append([]byte{1, 4}, make([]byte, 14)...), SpanID: append([]byte{2, 4}, make([]byte, 6)...)},
	}
	if diff := cmp.Diff(want, points(t, &producer{families: []Family{{into: h}}})[0].Exemplars); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// However many make series at the same time, there are no more than may be, and no count is lost.
func TestTableIsBounded(t *testing.T) {
	const goroutines, beyond = 4, 50
	c := &counters{}
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for i := range maxSeries - 1 + beyond {
				c.with(attribute.Int("i", i)).point().Add(1)
			}
		})
	}
	group.Wait()
	var listed, sum int64
	var last attribute.Set
	for labels, n := range c.all() {
		listed, last = listed+1, labels
		sum += n.Load()
	}
	if listed != maxSeries || sum != goroutines*(maxSeries-1+beyond) {
		t.Errorf("%d series of %d, with the sum %d", listed, maxSeries, sum)
	}
	if v, ok := last.Value(overflow); !ok || !v.AsBool() || c.beyond.point.Load() != goroutines*beyond {
		t.Errorf("the last is %v, %d are beyond", last, c.beyond.point.Load())
	}
}

// collectorOf is an exporter for a collector with preferences.
type collectorOf struct {
	stuckPush
	temporality sdk.TemporalitySelector
	aggregation sdk.Aggregation
	received    []metricdata.Metrics
}

func (c *collectorOf) Temporality(kind sdk.InstrumentKind) metricdata.Temporality {
	return c.temporality(kind)
}

func (c *collectorOf) Aggregation(kind sdk.InstrumentKind) sdk.Aggregation {
	if kind == sdk.InstrumentKindHistogram {
		return c.aggregation
	}
	return sdk.DefaultAggregationSelector(kind)
}

func (c *collectorOf) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	c.received = nil
	for _, s := range all.ScopeMetrics {
		if s.Scope.Name == otlp.Scope {
			c.received = append(c.received, s.Metrics...)
		}
	}
	return nil
}

// A collector gets every histogram once, in the form that it prefers. Scrapers get theirs.
func TestCollectorsPreferences(t *testing.T) {
	explicit := sdk.DefaultAggregationSelector(sdk.InstrumentKindHistogram)
	for name, c := range map[string]struct {
		collector collectorOf
		want      uint64 // what the second push counts of two admissions, one before each push
	}{
		"cumulative":  {collectorOf{temporality: sdk.CumulativeTemporalitySelector, aggregation: explicit}, 2},
		"delta":       {collectorOf{temporality: sdk.DeltaTemporalitySelector, aggregation: explicit}, 1},
		"lowmemory":   {collectorOf{temporality: sdk.LowMemoryTemporalitySelector, aggregation: explicit}, 1},
		"exponential": {collectorOf{temporality: sdk.CumulativeTemporalitySelector, aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(Config{Exporter: &c.collector, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for range 2 {
				m.left.record(t.Context(), m.phases[chain.Mutating], time.Second, &moment{})
				if err := m.provider.ForceFlush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(c.collector.received) != 1 {
				t.Fatalf("received %v", c.collector.received)
			}
			switch got := c.collector.received[0].Data.(type) {
			case metricdata.Histogram[float64]:
				if p := got.DataPoints[0]; name == "exponential" || got.Temporality != c.collector.temporality(sdk.InstrumentKindHistogram) || p.Count != c.want || p.StartTime.IsZero() {
					t.Errorf("received %v", got)
				}
			case metricdata.ExponentialHistogram[float64]:
				if p := got.DataPoints[0]; name != "exponential" || p.Count != c.want || p.Sum != 2 {
					t.Errorf("received %v", got)
				}
			}
			if n := strings.Count(scraped(m), `dispatcher_deadline_left_seconds_count{phase="mutate"} 2`); n != 1 {
				t.Errorf("scraped %d times", n)
			}
		})
	}
}

func scraped(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
