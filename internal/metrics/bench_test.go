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
// that are only scraped, and those that are pushed, too, which are counted twice.
func BenchmarkObserve(b *testing.B) {
	for name, variables := range map[string]otlp.Environment{
		"scraped": func(string) string { return "" },
		"pushed":  func(name string) string { return map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}[name] },
	} {
		b.Run(name, func(b *testing.B) {
			m, err := metrics.New(metrics.Config{Environment: variables, Logger: slog.New(slog.DiscardHandler)})
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
