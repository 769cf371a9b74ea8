// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// push sends the metrics to a collector from time to time.
type push struct {
	sdk.Exporter
	dropped atomic.Int64
	log     *slog.Logger
	secrets secrets
}

// newPush returns nil where nothing is pushed.
func newPush(cfg *MetricsConfig) (*push, error) {
	if cfg.Exporter == nil && cfg.Environment != nil {
		exporter, err := cfg.Environment.metricExporter()
		if err != nil {
			return nil, err
		}
		cfg.Exporter = exporter
	}
	if cfg.Exporter == nil {
		return nil, nil
	}
	return &push{Exporter: cfg.Exporter, log: cfg.Logger, secrets: cfg.Environment.secrets()}, nil
}

// reader pushes until it is shut down: what is recorded, and what others gathers.
func (p *push) reader(others prometheus.Gatherer) sdk.Reader {
	return sdk.NewPeriodicReader(p, sdk.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(others))))
}

// Export implements sdk.Exporter. It keeps its error: the SDK's way to tell it is
// a global one.
func (p *push) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	if err := p.Exporter.Export(ctx, all); err != nil {
		p.dropped.Add(1)
		p.log.Warn("metrics not pushed: the collector does not take them", "error", p.secrets.hide(err))
	}
	return nil
}
