// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// Memory of an admission has nothing of the one that had it last.
func TestPooledIsEmpty(t *testing.T) {
	d, _, _ := watched(t)
	t.Run("admission", func(t *testing.T) {
		a := new(admission)
		pooled.Check(t, a, func() {
			a.subject = newSubject(request(), nil, nil)
			a.dispatcher = d
			a.release()
		})
	})
	t.Run("verdict", func(t *testing.T) { // of the caller
		v := new(Verdict)
		pooled.Check(t, v, v.Reset)
	})
	t.Run("batch", func(t *testing.T) {
		b := d.newBatch()
		pooled.Check(t, b, func() {
			b.list[0] = new(invocation)
			b.release()
		}, "pool", "calls", "timer", "answers", "list[]", "over") // newBatch sets over
	})
	t.Run("invocation", func(t *testing.T) {
		inv := &invocation{inquiry: inquiry{span: trace.SpanFromContext(t.Context())}}
		pooled.Check(t, inv, func() {
			b := d.newBatch()
			b.list = append(b.list, inv)
			b.release()
		}, "ticket") // only ever grows
	})
}
