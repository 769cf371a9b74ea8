// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
)

// TurnedAway implements server.Observer. What is rare may cost a set of its own.
func (m *Metrics) TurnedAway(cluster, reason string) {
	m.refusals.Add(context.Background(), 1, newAttrs(attribute.String("cluster", cluster), attribute.String("reason", reason)).add...)
}
