// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// invocation is one webhook that wants the review. It owns what its call needs,
// so that the call may outlive the admission.
type invocation struct {
	webhook  *registry.Webhook
	position int
	round    int
	call     webhook.Call
}

// prepare fills in the call of inv but for its deadline, for the object as it is
// now. Its error says why the webhook cannot be called at all.
func (a *admission) prepare(inv *invocation) error {
	w := inv.webhook
	if a.Review.DryRun && !w.SideEffects.SupportsDryRun() {
		return refuseDryRun(w.Name)
	}
	if w.Version == 0 {
		return &webhook.CallError{Cause: webhook.NotConvertible, Err: errors.New("none of its admissionReviewVersions is supported")}
	}
	if time.Until(a.Deadline) < leastTime {
		return &webhook.CallError{Cause: webhook.NoTimeLeft, Err: errors.New("no time left for the call before the caller's deadline")}
	}
	inv.call = webhook.Call{
		Target: w.Target,
		Body:   a.payloads.Get(w.Version, a.generation, a.object),
		Want: codec.Expectation{
			UID:      a.uid,
			Version:  w.Version,
			Mutating: a.Phase == registry.Mutating,
			Compat:   w.Compat,
		},
		Cluster:  a.Cluster.Name,
		Resource: a.resource(),
		Repeat:   w.Repeat,
	}
	inv.call.Repeat.Safe = w.SideEffects.Repeatable(a.Review.DryRun)
	return nil
}

// ask makes the call of one invocation. A panic in it is that webhook's
// CallError; the process lives.
func (d *Dispatcher) ask(ctx context.Context, inv *invocation) (resp codec.Response, err error) {
	start := time.Now()
	defer func() {
		if r := recover(); r != nil {
			d.recordPanic(ctx, inv.webhook, r)
			resp = codec.Response{}
			err = &webhook.CallError{Cause: webhook.Panic, Elapsed: time.Since(start), Err: fmt.Errorf("panic while calling: %v", r)}
		}
	}()
	return d.caller.Call(ctx, inv.call)
}

// answer is what came back for the invocation at index.
type answer struct {
	index   int
	resp    codec.Response
	err     error
	elapsed time.Duration
}

// start makes the call in a goroutine of its own, which may outlive the
// admission, and delivers the answer. answers must have room for it.
func (d *Dispatcher) start(ctx context.Context, inv *invocation, index int, answers chan<- answer) {
	inv.call.Body.Retain()
	d.calls.Go(func() {
		defer inv.call.Body.Release()
		begin := time.Now()
		resp, err := d.ask(ctx, inv)
		answers <- answer{index: index, resp: resp, err: err, elapsed: time.Since(begin)}
	})
}
