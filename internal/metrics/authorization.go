// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// accessMetrics are the instruments of what the authorizers of clusters are asked.
type accessMetrics struct {
	accesses counters
	access   histograms
}

func (m *accessMetrics) families() []Family {
	return []Family{
		{"dispatcher.access_reviews", Counter, "{question}", labels(cluster(), closed("result", "allowed", "denied", "failed", "cached", "shed")),
			"Questions of expressions and plugins to a cluster's authorizer. `allowed`, `denied`: answered by a SubjectAccessReview; no opinion is `denied`. `cached`: by an answer that is known, or that another question brought. `failed`: not answered. `shed`: not asked, because too many were under way.", &m.accesses},
		{"dispatcher.access_review.duration", Histogram, "s", labels(closed("result", "allowed", "denied", "failed")),
			"Time from a question to a cluster's authorizer that nothing known answers to the answer, or to the error in its place.", &m.access},
	}
}

// AccessReviewed counts a question to the authorizer of a cluster.
func (m *Metrics) AccessReviewed(cluster, result string, took time.Duration) {
	came := attribute.String("result", result)
	m.accesses.with(attribute.String("cluster", cluster), came).point().Add(1)
	switch result {
	case "allowed", "denied", "failed":
		m.access.record(context.Background(), m.access.with(came), took, &moment{at: time.Now()})
	}
}
