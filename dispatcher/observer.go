// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// Record is what there is to tell of one admission.
type Record struct {
	Request
	Verdict *Verdict
	Start   time.Time
	Elapsed time.Duration
}

// Observer is told of every admission once it is decided, on the goroutine that
// answers it: it must be quick, and must not block. The Record with everything
// that hangs off it is borrowed until Observe returns.
type Observer interface {
	Observe(ctx context.Context, r *Record)
}

// ShadowRecord is what there is to tell of one invocation in mode Shadow.
type ShadowRecord struct {
	Cluster *chain.Cluster
	Phase   chain.Phase
	// Outcome is what the invocation would have come to in mode Enforce, short of
	// applying a patch.
	Outcome *Outcome
	// Dropped: the webhook was not called, because too many Shadow calls were under
	// way. The Outcome names the webhook only.
	Dropped bool
}

// ShadowObserver is told of every invocation in mode Shadow, on several goroutines.
// The ShadowRecord is borrowed until ObserveShadow returns.
type ShadowObserver interface {
	ObserveShadow(ctx context.Context, r *ShadowRecord)
}

// publish logs the decision and tells the observers of it.
func (d *Dispatcher) publish(ctx context.Context, req Request, v *Verdict, start time.Time) {
	elapsed := time.Since(start)
	d.record(ctx, req, v, elapsed)
	if len(d.observers) > 0 {
		d.tell(ctx, &Record{Request: req, Verdict: v, Start: start, Elapsed: elapsed})
	}
}

func (d *Dispatcher) tell(ctx context.Context, r *Record) {
	for _, o := range d.observers {
		o.Observe(ctx, r)
	}
}
