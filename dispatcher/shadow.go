// SPDX-License-Identifier: Apache-2.0

package dispatcher

import "context"

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
	answers := make(chan answer, 1)
	d.start(ctx, inv, answers)
	d.calls.Go(func() {
		defer func() { <-d.shadowSlots }()
		got := <-answers
		d.recordShadow(ctx, cluster, inv, got.resp, got.err, got.elapsed)
	})
}
