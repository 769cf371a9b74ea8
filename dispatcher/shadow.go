// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"time"
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
	inv.call.Body.Retain()
	d.calls.Go(func() {
		defer func() { <-d.shadowSlots }()
		defer inv.call.Body.Release()
		begin := time.Now()
		resp, err := d.ask(ctx, inv)
		d.recordShadow(ctx, cluster, inv, resp, err, time.Since(begin))
	})
}
