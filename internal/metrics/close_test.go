// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/otlp"
)

// stuckPush is an exporter that tries for as long as it may.
type stuckPush struct{ began chan struct{} }

func (stuckPush) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (stuckPush) Aggregation(kind metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(kind)
}

func (s stuckPush) Export(ctx context.Context, _ *metricdata.ResourceMetrics) error {
	s.began <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (stuckPush) ForceFlush(context.Context) error { return nil }
func (stuckPush) Shutdown(context.Context) error   { return nil }

// A push that is stuck is counted, and holds up the end no longer than it may.
func TestCloseEndsAPushThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := stuckPush{make(chan struct{}, 3)}
		m, err := New(Config{Exporter: exporter, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		<-exporter.began // after a minute of the bubble's time
		start := time.Now()
		m.Close()
		if elapsed := time.Since(start); elapsed > otlp.FlushTimeout {
			t.Errorf("Close took %s", elapsed)
		}
		if n := m.Dropped(); n != 2 {
			t.Errorf("%d dropped: not the one under way and the last", n)
		}
	})
}

// An exporter itself ends, too, when its collector takes nothing.
func TestCloseMetricsWithACollectorThatHangs(t *testing.T) {
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // and never accept
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hanging.Close() }()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hanging.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000") // nobody waits for that
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	m, err := New(Config{Environment: os.Getenv, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	goleak.VerifyNone(t)
}
