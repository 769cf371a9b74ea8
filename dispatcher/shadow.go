// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// shadow makes a call whose answer is recorded and never decides. It costs the admission
// no time: whatever may wait is done on a goroutine of its own, the form of the review
// included. Above the cluster's share of the Shadow calls under way, or of the bytes that
// are held, this one is dropped, visibly.
func (a *admission) shadow(inv *invocation, q hook.Question) {
	d, s, done := a.dispatcher, a.newShadowed(), a.mayShadow(inv.webhook)
	if done == nil {
		return
	}
	s.unheard, _ = a.failurePolicy(inv.webhook) // later the review is gone
	own := d.newBatch()                         // not the admission's, where nobody waits for it
	alone := own.add(inv.webhook, inv.position, inv.round)
	s.view = q.Retain()
	ctx := alone.startSpan(s.ctx) // that of the admission is not over yet
	d.goShadow(ctx, func() {
		defer s.view.Release()
		defer done()
		defer own.release()
		d.start(ctx, alone, q)
		alone.await()
		<-own.answers
		s.conclude(alone)
	})
}

// shadowLater finds out whether inv wants the review, where that takes a lookup, and
// makes the call then. What is matched is an admission of its own, for the one webhook.
func (a *admission) shadowLater(inv *invocation) {
	d, done := a.dispatcher, a.mayShadow(inv.webhook)
	if done == nil {
		return
	}
	ctx, req, view, position, round := context.WithoutCancel(a.ctx), a.Request, a.subject.Retain(), inv.position, inv.round
	req.Host, req.Delivery = nil, nil // borrowed, and the admission's own
	d.goShadow(ctx, func() {
		own := d.newAdmission(ctx, req)
		defer own.release()
		own.shadows = true
		own.subject.Release()
		own.subject.View = view // as the object was, which own.release gives back
		own.batch = d.newBatch()
		defer own.batch.close()
		decided := func() *invocation {
			defer done() // the call takes its own
			return own.consider(position, round)
		}()
		if decided != nil {
			own.ask(decided, 0)
		}
		own.tellUncalledShadows()
		// The verdict is not known here. Mostly the admission takes place.
		own.settleTransactions(&Verdict{Response: codec.Response{Allowed: true}})
	})
}

// mayShadow takes the share of one Shadow call, until done, or drops it: done is nil.
func (a *admission) mayShadow(w *chain.Entry) (done func()) {
	done, err := a.dispatcher.capacity.Shadow(a.Cluster.Name, a.Review.Body)
	if err != nil {
		s := a.newShadowed()
		s.recordDropped(w)
		s.tell(&Outcome{Webhook: w}, true)
		return nil
	}
	return done
}

// goShadow runs f, which outlives its admission, on a goroutine of its own.
func (d *Dispatcher) goShadow(ctx context.Context, f func()) {
	d.calls.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				d.recorder.panicked(ctx, crash.Text(value), debug.Stack())
			}
		}()
		f()
	})
}

// shadowed is what is kept of an admission for a Shadow call that outlives it.
type shadowed struct {
	dispatcher *Dispatcher
	cluster    *chain.Cluster
	phase      chain.Phase
	ctx        context.Context
	view       *hook.View
	unheard    Result // what a CallError would have come to
}

func (a *admission) newShadowed() shadowed {
	return shadowed{dispatcher: a.dispatcher, cluster: a.Cluster, phase: a.Phase, ctx: context.WithoutCancel(a.ctx)}
}

// tellUncalledShadows tells of the Shadow webhooks of a that could not be called.
func (a *admission) tellUncalledShadows() {
	for i := range a.shadowed {
		s := a.newShadowed()
		s.tell(&a.shadowed[i], false)
	}
}

// conclude tells what came of the call.
func (s *shadowed) conclude(inv *invocation) {
	o := Outcome{
		Webhook: inv.webhook, Position: inv.position, Round: inv.round,
		Response: inv.resp, Err: inv.err, Elapsed: inv.elapsed,
	}
	o.classify()
	if o.Result == Failed {
		o.Result = s.unheard
	}
	s.record(&o)
	s.tell(&o, false)
	inv.endSpan(&o)
}

func (s *shadowed) tell(o *Outcome, dropped bool) {
	for _, observer := range s.dispatcher.shadows {
		observer.ObserveShadow(s.ctx, &ShadowRecord{Cluster: s.cluster, Phase: s.phase, Outcome: o, Dropped: dropped})
	}
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

// ShadowObserver is notified of every invocation in mode Shadow, on several goroutines.
// The ShadowRecord is borrowed until ObserveShadow returns.
type ShadowObserver interface {
	ObserveShadow(ctx context.Context, r *ShadowRecord)
}

func (s *shadowed) record(o *Outcome) {
	attrs := append(outcomeAttrs(o.Webhook, o.Err),
		slog.String("cluster", s.cluster.Name),
		slog.String("uid", cutBytes(string(s.view.UID), maxLogged)),
		slog.String("outcome", o.Result.String()),
		slog.Bool("allowed", o.Result == Allowed),
		slog.Int("code", int(o.Response.Code)),
		slog.Float64("elapsed_seconds", o.Elapsed.Seconds()))
	s.dispatcher.recorder.log.LogAttrs(s.ctx, slog.LevelInfo, "shadow webhook answered", attrs...)
}

func (s *shadowed) recordDropped(w *chain.Entry) {
	attrs := append(outcomeAttrs(w, nil), slog.String("cluster", s.cluster.Name), slog.Int("limit", s.dispatcher.capacity.Limits().ShadowCalls))
	s.dispatcher.recorder.log.LogAttrs(s.ctx, slog.LevelWarn, "shadow call dropped: too many under way", attrs...)
}
