// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// BenchmarkObserve is what metrics add to one admission with five webhooks: those
// that are only scraped, those that are pushed, too, and those that are pushed to a
// collector for which histograms are recorded twice.
func BenchmarkObserve(b *testing.B) {
	for _, name := range []string{"scraped", "pushed", "pushed as delta"} {
		b.Run(name, func(b *testing.B) {
			if name == "pushed as delta" {
				b.Setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta") // which the SDK reads itself
			}
			pushed := otlp.Environment(func(variable string) string { return map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}[variable] })
			if name == "scraped" {
				pushed = nil
			}
			m, err := metrics.New(metrics.Config{Environment: pushed, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			observe(b, m)
		})
	}
}

func observe(b *testing.B, m *metrics.Metrics) {
	f := newFleet(b, 1, 10)
	r := f.record(f.clusters[0], chain.Validating, dispatcher.Allowed, "")
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(context.Background(), r)
		for _, w := range f.clusters[0].Validating.Webhooks {
			m.Attempted(context.Background(), transport.Attempt{Owner: w.ID})
		}
	}
}
