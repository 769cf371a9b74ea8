// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// invocation is one webhook that wants the review. It owns what its call needs,
// so that the call may outlive the admission.
type invocation struct {
	webhook  *chain.Entry
	position int
	round    int
	request  webhook.Request
	call     transport.Call

	batch   *batch
	begin   time.Time  // of the call
	waiting bool       // started, and without an Outcome
	span    trace.Span // nil where the admission is not sampled

	// The answer, once it has arrived.
	resp    codec.Response
	err     error
	elapsed time.Duration
}

// prepare fills in the call of inv but for its deadline, for the object as it is
// now, and takes a slot for the admission. Its error says why the webhook cannot be called at all.
func (a *admission) prepare(inv *invocation) error {
	w := inv.webhook
	if a.Review.DryRun && !w.SideEffects.SupportsDryRun() {
		return refuseDryRun(w.Name)
	}
	if w.Version == 0 {
		return &hook.CallError{Cause: hook.NotConvertible, Err: errors.New("none of its admissionReviewVersions is supported")}
	}
	if time.Until(a.Deadline) < leastTime {
		return &hook.CallError{Cause: hook.NoTimeLeft, Err: errors.New("no time left for the call before the caller's deadline")}
	}
	if w.Mode != chain.Shadow { // those never wait, nor hold anybody up
		if err := a.admit(); err != nil {
			return err
		}
	}
	form := webhook.FormOf(w.Target, w.Version, w.Wire, a.Review.Body.Len(), time.Now())
	body, err := a.payload(form)
	if err != nil {
		return err
	}
	inv.request = webhook.Request{
		Target: w.Target,
		Body:   body,
		Form:   form,
		Plain:  a.plain(w, form),
		Want: codec.Expectation{
			UID:      a.uid,
			Version:  w.Version,
			Mutating: a.Phase == chain.Mutating,
			Compat:   w.Compat,
		},
	}
	inv.call = transport.Call{
		Target:   w.Target,
		Cluster:  a.Cluster.Name,
		Resource: a.resource(),
		Shadow:   w.Mode == chain.Shadow,
		Repeat:   w.Repeat,
		Owner:    w,
	}
	denies, _ := a.failurePolicy(w)
	inv.call.Wait = denies == Failed && w.Mode == chain.Enforce
	inv.call.Repeat.Safe = w.SideEffects.Repeatable(a.Review.DryRun)
	return nil
}

// payload returns the review in the form f, for the object as it is now. Making one
// of a large object takes its turn.
func (a *admission) payload(f codec.Form) (*codec.Body, error) {
	if body := a.payloads.Find(f, a.generation, a.object); body != nil && (body == a.Review.Body || body.Charged()) {
		return body, nil
	}
	size := a.Review.Body.Len()
	if f.Encoding == codec.JSON && f.Coding == codec.Identity {
		size = 0 // copied, which takes as long as to send it
	}
	done, err := a.takeTurn(size)
	if err != nil {
		return nil, &hook.CallError{Cause: hook.Shed, Err: err}
	}
	defer done()
	body := a.payloads.Get(f, a.generation, a.object)
	if !a.holdForm(body) {
		return nil, &hook.CallError{Cause: hook.Shed, Err: errShed}
	}
	return body, nil
}

// plain returns the review without what of form the webhook has only said that it
// reads; none where that is nothing.
func (a *admission) plain(w *chain.Entry, form codec.Form) codec.Deferred {
	plain := w.Wire.Plain(form)
	if plain == form {
		return codec.Deferred{}
	}
	return a.payloads.Later(plain, a.generation, a.object)
}

// start makes the call of inv, which may outlive the admission; the answer arrives
// in its batch. A panic is that webhook's CallError; the process lives.
func (d *Dispatcher) start(ctx context.Context, inv *invocation) {
	inv.begin = time.Now()
	inv.call.Over = &inv.batch.over
	inv.call.Message = webhook.NewMessage(inv.request)
	inv.batch.users.Add(1)
	d.calls.Add(1)
	defer func() {
		if r := recover(); r != nil {
			inv.Receive(codec.Response{}, &hook.CallError{
				Cause: hook.Panic, Elapsed: time.Since(inv.begin), Err: fmt.Errorf("panic while calling: %s", crash.Text(r)), Stack: debug.Stack(),
			})
		}
	}()
	d.caller.Start(inv.startSpan(ctx), &inv.call, inv)
}

// Receive implements webhook.Receiver.
func (inv *invocation) Receive(resp codec.Response, err error) {
	inv.resp, inv.err, inv.elapsed = resp, err, time.Since(inv.begin)
	inv.call.Message.Release()
	b := inv.batch
	defer b.calls.Done()
	b.answers <- inv
	b.release()
}
