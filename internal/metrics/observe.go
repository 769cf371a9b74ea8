// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Observe implements dispatcher.Observer.
func (m *Metrics) Observe(ctx context.Context, r *dispatcher.Record) {
	g := m.sets.of(r.Snapshot)
	c := g.cluster(r.Cluster)
	set := &c.decided[r.Phase][r.Verdict.Decision()]
	m.requests.Add(ctx, 1, set.add...)
	m.duration.Record(ctx, r.Elapsed.Seconds(), set.record...)
	m.left.Record(ctx, r.Deadline.Sub(r.Start.Add(r.Elapsed)).Seconds(), m.phases[r.Phase].record...)
	if r.Verdict.Shed() {
		m.shed.Add(ctx, 1, c.in[r.Phase].add...)
	}
	if r.Verdict.Bypass != "" {
		m.bypasses.Add(ctx, 1, newAttrs(c.name, phaseAttr(r.Phase), attribute.String("rule", r.Verdict.Bypass)).add...)
	}
	if r.Outdated {
		m.outdated.Add(ctx, 1, c.in[r.Phase].add...)
	}
	for i := range r.Verdict.Outcomes {
		o := &r.Verdict.Outcomes[i]
		m.outcome(ctx, g, c, g.webhook(o.Webhook, r.Phase), o)
	}
}

// outcome counts one invocation. What is rare may cost a set of its own.
func (m *Metrics) outcome(ctx context.Context, g *generation, c *clusterSets, w *webhookSets, o *dispatcher.Outcome) {
	m.calls.Add(ctx, 1, w.outcomes[o.Result].add...)
	if o.Timed() && o.Elapsed > 0 {
		m.call.Record(ctx, o.Elapsed.Seconds(), w.duration.record...)
	}
	if o.Operations > 0 {
		m.operation.Add(ctx, int64(o.Operations), g.caller(o.Webhook).plain.add...)
	}
	if o.Cause == "" {
		return
	}
	cause := attribute.String("cause", string(o.Cause))
	m.errors.Add(ctx, 1, newAttrs(w.names[0], w.names[1], w.phase, cause).add...)
	if o.FailsOpen() {
		m.failOpen.Add(ctx, 1, newAttrs(c.name, w.names[0], w.names[1], cause).add...)
	}
}

// Attempted is webhook.Observer's.
func (m *Metrics) Attempted(ctx context.Context, a transport.Attempt) {
	if s := m.caller(a.Owner); s != nil {
		m.attempts.Add(ctx, 1, s.attempts[a.Kind].add...)
	}
}

// Refused is webhook.Observer's.
func (m *Metrics) Refused(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.refused.Add(ctx, 1, s.plain.add...)
	}
}

// Disagreed is webhook.Observer's.
func (m *Metrics) Disagreed(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.disagreed.Add(ctx, 1, s.plain.add...)
	}
}

// Misread is webhook.Observer's.
func (m *Metrics) Misread(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.misread.Add(ctx, 1, s.plain.add...)
	}
}

// caller returns the sets of the webhook whose call it is, nil if it is nobody's.
func (m *Metrics) caller(owner any) *callSets {
	w, ok := owner.(*chain.Entry)
	if !ok {
		return nil
	}
	return m.sets.newest().caller(w)
}

// ObserveShadow implements dispatcher.ShadowObserver.
func (m *Metrics) ObserveShadow(ctx context.Context, r *dispatcher.ShadowRecord) {
	w := m.sets.newest().webhook(r.Outcome.Webhook, r.Phase)
	set := &w.outcomes[r.Outcome.Result]
	if r.Dropped {
		set = &w.dropped
	}
	m.shadow.Add(ctx, 1, set.add...)
}

// TurnedAway implements server.Observer. What is rare may cost a set of its own.
func (m *Metrics) TurnedAway(cluster, reason string) {
	m.refusals.Add(context.Background(), 1, newAttrs(attribute.String("cluster", cluster), attribute.String("reason", reason)).add...)
}

// CircuitChanged counts a change of a circuit of an endpoint of the target. What is
// rare may cost a set of its own.
func (m *Metrics) CircuitChanged(target string, c breaker.Change) {
	circuit := resourceCircuit
	switch {
	case c.Cluster == "":
		circuit = endpointCircuit
	case c.Resource == "":
		circuit = clusterCircuit
	}
	m.transitions.Add(context.Background(), 1, newAttrs(attribute.String("target", target),
		attribute.String("circuit", circuit), attribute.String("state", stateName(c.To))).add...)
}
