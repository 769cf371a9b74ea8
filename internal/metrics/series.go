// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// table holds the series of one family: at most maxSeries, the one for what is beyond
// included. P is what is recorded of a series; its zero value has recorded nothing.
type table[P any] struct {
	mu     sync.RWMutex
	known  map[attribute.Distinct]*series[P]
	listed []*series[P] // those known, in the order of their first record
	beyond series[P]    // of series that there is no room for
	over   bool         // something has been recorded beyond
}

// series is one that has been recorded.
type series[P any] struct {
	labels attribute.Set
	point  P
}

// handle records one series. It looks the series up at its first record only: most
// handles that are prepared never record, and would take the room of others.
type handle[P any] struct {
	of   *table[P]
	set  attribute.Set
	made atomic.Pointer[series[P]]
}

// with returns the handle of the series with these labels.
func (t *table[P]) with(labels ...attribute.KeyValue) *handle[P] {
	return &handle[P]{of: t, set: attribute.NewSet(labels...)}
}

// point returns what the handle records to.
func (h *handle[P]) point() *P {
	s := h.made.Load()
	if s == nil {
		s = h.of.find(h.set)
		h.made.Store(s)
	}
	return &s.point
}

// find returns the series of a set.
func (t *table[P]) find(set attribute.Set) *series[P] {
	key := set.Equivalent()
	t.mu.RLock()
	s := t.known[key]
	t.mu.RUnlock()
	if s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.known[key]; s != nil {
		return s
	}
	if len(t.listed) >= maxSeries-1 { // webhooks that have come and gone
		t.over = true
		return &t.beyond
	}
	if t.known == nil {
		t.known = map[attribute.Distinct]*series[P]{}
	}
	s = &series[P]{labels: set}
	t.known[key], t.listed = s, append(t.listed, s)
	return s
}

// all returns every series that has been recorded, what is beyond last.
func (t *table[P]) all() iter.Seq2[attribute.Set, *P] {
	return func(yield func(attribute.Set, *P) bool) {
		t.mu.RLock()
		listed, over := t.listed, t.over
		t.mu.RUnlock()
		for _, s := range listed {
			if !yield(s.labels, &s.point) {
				return
			}
		}
		if over {
			yield(attribute.NewSet(attribute.Bool(overflow, true)), &t.beyond.point)
		}
	}
}

// counters are the series of a family that counts. To count is an atomic addition; the
// series are read when somebody collects.
type counters struct{ table[atomic.Int64] }

// counter counts for one series.
type counter = handle[atomic.Int64]

// observe is a metric.Int64Callback. What is beyond comes last: from then on the SDK takes
// every series that it does not know for one that is beyond, too.
func (c *counters) observe(_ context.Context, to metric.Int64Observer) error {
	for labels, n := range c.all() {
		to.Observe(n.Load(), metric.WithAttributeSet(labels))
	}
	return nil
}
