// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// Memory of a call has nothing of the one that had it last.
func TestPooledIsEmpty(t *testing.T) {
	c := NewClient(ClientConfig{})
	defer c.Close()
	r := new(race)
	for i := range r.made {
		r.made[i].span.span = trace.SpanFromContext(t.Context())
	}
	pooled.Check(t, r, func() {
		c.running.Add(1)
		c.forget(r)
	}, "common", "timer")
}
