// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// shadow makes a call whose answer is recorded and never decides. It never
// waits: above the cluster's share of the Shadow calls under way, or of the bytes that
// are held, this one is dropped, visibly.
func (d *Dispatcher) shadow(a *admission, inv *invocation, q hook.Question) {
	s := d.newShadowed(a)
	done, err := d.capacity.Shadow(a.Cluster.Name, a.Review.Body)
	if err != nil {
		d.recordShadowDropped(a.ctx, a.Cluster, inv.webhook)
		s.tell(&Outcome{Webhook: inv.webhook}, true)
		return
	}
	s.unheard, _ = a.failurePolicy(inv.webhook) // later the review is gone
	own := d.newBatch()                         // not the admission's, where nobody waits for it
	alone := own.add(inv.webhook, inv.position, inv.round)
	s.view = q.Retain()
	d.start(s.ctx, alone, q)
	d.calls.Go(func() {
		defer s.view.Release()
		defer done()
		defer own.release()
		defer func() {
			if value := recover(); value != nil {
				d.recordPanic(s.ctx, crash.Text(value), debug.Stack())
			}
		}()
		<-own.answers
		s.conclude(alone)
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

func (d *Dispatcher) newShadowed(a *admission) shadowed {
	return shadowed{dispatcher: d, cluster: a.Cluster, phase: a.Phase, ctx: context.WithoutCancel(a.ctx)}
}

// tellUncalled tells of the Shadow webhooks of a that could not be called.
func (d *Dispatcher) tellUncalled(a *admission) {
	for i := range a.shadowed {
		s := d.newShadowed(a)
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
	s.dispatcher.recordShadow(s.ctx, s.view, &o)
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

// ShadowObserver is told of every invocation in mode Shadow, on several goroutines.
// The ShadowRecord is borrowed until ObserveShadow returns.
type ShadowObserver interface {
	ObserveShadow(ctx context.Context, r *ShadowRecord)
}

func (d *Dispatcher) recordShadow(ctx context.Context, v *hook.View, o *Outcome) {
	attrs := append(outcomeAttrs(o.Webhook, o.Err),
		slog.String("cluster", v.Cluster),
		slog.String("uid", cutBytes(string(v.UID), maxLogged)),
		slog.String("outcome", o.Result.String()),
		slog.Bool("allowed", o.Result == Allowed),
		slog.Int("code", int(o.Response.Code)),
		slog.Float64("elapsed_seconds", o.Elapsed.Seconds()))
	d.log.LogAttrs(ctx, slog.LevelInfo, "shadow webhook answered", attrs...)
}

func (d *Dispatcher) recordShadowDropped(ctx context.Context, cluster *chain.Cluster, w *chain.Entry) {
	attrs := append(outcomeAttrs(w, nil), slog.String("cluster", cluster.Name), slog.Int("limit", d.capacity.Limits().ShadowCalls))
	d.log.LogAttrs(ctx, slog.LevelWarn, "shadow call dropped: too many under way", attrs...)
}
