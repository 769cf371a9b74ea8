// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

// ObserveShadow implements dispatcher.ShadowObserver.
func (m *Metrics) ObserveShadow(ctx context.Context, r *dispatcher.ShadowRecord) {
	w := m.sets.newest().webhook(r.Outcome.Webhook, r.Phase)
	set := &w.outcomes[r.Outcome.Result]
	if r.Dropped {
		set = &w.dropped
	}
	m.shadow.Add(ctx, 1, set.add...)
}
