// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"testing"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// BenchmarkObserve is what metrics add to one admission with five webhooks.
func BenchmarkObserve(b *testing.B) {
	f := newFleet(1, 5)
	m := newMetrics(b)
	r := f.record(f.clusters[0], f.webhooks, dispatcher.Allowed, "")
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(context.Background(), r)
		for _, w := range f.webhooks {
			m.Attempted(context.Background(), webhook.Attempt{Owner: w})
		}
	}
}
