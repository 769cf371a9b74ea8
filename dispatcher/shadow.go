// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// shadow makes a call whose answer is recorded and never decides. It never
// waits: above the limit of Shadow calls under way this one is dropped, visibly.
func (d *Dispatcher) shadow(a *admission, inv *invocation) {
	select {
	case d.shadowSlots <- struct{}{}:
	default:
		d.recordShadowDropped(a.ctx, a.Cluster, inv.webhook)
		return
	}
	cluster := a.Cluster
	ctx := context.WithoutCancel(a.ctx)
	own := d.newBatch() // not the admission's, where nobody waits for it
	alone := own.add(inv.webhook, inv.position, inv.round)
	alone.call = inv.call
	d.start(ctx, alone)
	d.calls.Go(func() {
		defer func() { <-d.shadowSlots }()
		defer own.release()
		<-own.answers
		d.recordShadow(ctx, cluster, alone, alone.resp, alone.err, alone.elapsed)
		alone.endSpan(shadowOutcome(alone.resp, alone.err))
	})
}

// shadowOutcome is what a Shadow call came to, for its span alone.
func shadowOutcome(resp codec.Response, err error) *Outcome {
	var callErr *webhook.CallError
	switch {
	case errors.As(err, &callErr):
		return &Outcome{Result: FailedOpen, Cause: callErr.Cause}
	case err == nil && resp.Allowed:
		return &Outcome{Result: Allowed}
	}
	return &Outcome{Result: Denied}
}
