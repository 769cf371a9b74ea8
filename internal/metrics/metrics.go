// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// instruments are those of the families that are recorded.
type instruments struct {
	requestMetrics
	webhookMetrics
	targetMetrics
	accessMetrics
}

func (i *instruments) families() []Family {
	return slices.Concat(i.requestMetrics.families(), i.webhookMetrics.families(), i.targetMetrics.families(), i.accessMetrics.families(), processFamilies(), mirrorFamilies())
}

// Metrics counts what happens: it is an Observer of the server, of the dispatcher,
// also for the mode Shadow, and of calls. It is safe for concurrent use.
type Metrics struct {
	provider *sdk.MeterProvider
	meter    metric.Meter
	registry *prometheus.Registry // what is counted
	runtime  *prometheus.Registry // what Go and the system know of the process
	push     *push                // nil: metrics are scraped only
	sets     *sets
	phases   [phases]histogram // of deadline_left

	instruments
	transport.Silent // of what is not counted
}

// Config is the configuration of Metrics.
type Config struct {
	Environment otlp.Environment // the OTEL_* variables; default: none is set
	Exporter    sdk.Exporter     // takes pushes; default: OTLP, where the Environment asks for it
	Version     string           // of the service
	Logger      *slog.Logger     // required where metrics are pushed
}

// New returns Metrics that count into a registry of their own, and push
// what they count where that is asked for. Who makes them closes them.
func New(cfg Config) (*Metrics, error) {
	push, err := newPush(&cfg)
	if err != nil {
		return nil, err
	}
	m := &Metrics{registry: prometheus.NewRegistry(), runtime: prometheus.NewRegistry(), push: push, sets: newSets()}
	m.runtime.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	recorded := &producer{families: m.families(), start: time.Now()}
	scraped, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo(),
		exporter.WithProducer(recorded), exporter.WithAggregationSelector(withoutHistograms))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	options := []sdk.Option{sdk.WithReader(scraped), sdk.WithCardinalityLimit(maxSeries)}
	if push != nil {
		described, err := otlp.Resource(cfg.Version)
		if err != nil {
			return nil, err
		}
		options = append(options, sdk.WithResource(described), sdk.WithReader(push.reader(m.runtime, recorded)))
	}
	m.provider = sdk.NewMeterProvider(options...)
	m.meter = m.provider.Meter(otlp.Scope)
	return m, m.instrument()
}

// instrument makes the instruments of the families that are recorded.
func (m *Metrics) instrument() error {
	for _, f := range m.families() {
		var err error
		switch into := f.into.(type) {
		case *counters:
			_, err = m.meter.Int64ObservableCounter(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help), metric.WithInt64Callback(into.observe))
		case *histograms:
			if m.push != nil && m.push.converts() {
				into.converted, err = m.meter.Float64Histogram(f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help),
					metric.WithExplicitBucketBoundaries(bounds[:]...))
			}
		}
		if err != nil {
			return fmt.Errorf("metric %s: %w", f.Name, err)
		}
	}
	for p := range m.phases {
		m.phases[p] = m.left.with(phaseAttr(chain.Phase(p)))
	}
	return nil
}

// withoutHistograms is an sdk.AggregationSelector: the producer gives the histograms.
func withoutHistograms(kind sdk.InstrumentKind) sdk.Aggregation {
	if kind == sdk.InstrumentKindHistogram {
		return sdk.AggregationDrop{}
	}
	return sdk.DefaultAggregationSelector(kind)
}

// Handler serves the metrics as Prometheus and OpenMetrics text.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, m.runtime}, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Dropped returns how many pushes the collector has not taken.
func (m *Metrics) Dropped() int64 {
	if m.push == nil {
		return 0
	}
	return m.push.dropped.Load()
}

// Close pushes a last time, as far as the collector takes it at once.
func (m *Metrics) Close() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), otlp.FlushTimeout)
	defer cancel()
	_ = m.provider.Shutdown(ctx) // what it could not push it has said
}

// push sends the metrics to a collector from time to time.
type push struct {
	sdk.Exporter
	dropped atomic.Int64
	log     *slog.Logger
	secrets otlp.Secrets
}

// newPush returns nil where nothing is pushed.
func newPush(cfg *Config) (*push, error) {
	if cfg.Exporter == nil && cfg.Environment != nil {
		exporter, err := cfg.Environment.MetricExporter()
		if err != nil {
			return nil, err
		}
		cfg.Exporter = exporter
	}
	if cfg.Exporter == nil {
		return nil, nil
	}
	return &push{Exporter: cfg.Exporter, log: cfg.Logger, secrets: cfg.Environment.Secrets()}, nil
}

// reader pushes until it is shut down: what is recorded, and what others gathers.
func (p *push) reader(others prometheus.Gatherer, recorded sdk.Producer) sdk.Reader {
	options := []sdk.PeriodicReaderOption{sdk.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(others)))}
	if !p.converts() {
		options = append(options, sdk.WithProducer(recorded))
	}
	return sdk.NewPeriodicReader(p, options...)
}

// converts reports whether the collector wants histograms in another form than the
// producer's: since the last push, or with exponential buckets.
func (p *push) converts() bool {
	_, explicit := p.Aggregation(sdk.InstrumentKindHistogram).(sdk.AggregationExplicitBucketHistogram)
	return !explicit || p.Temporality(sdk.InstrumentKindHistogram) != metricdata.CumulativeTemporality
}

// Export implements sdk.Exporter. It keeps its error: the SDK's way to tell it is
// a global one.
func (p *push) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	if err := p.Exporter.Export(ctx, all); err != nil {
		p.dropped.Add(1)
		p.log.Warn("metrics not pushed: the collector does not take them", "error", p.secrets.Hide(err))
	}
	return nil
}
