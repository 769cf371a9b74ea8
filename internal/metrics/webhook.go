// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The families that are read when somebody scrapes.
const (
	webhookInfo     = "dispatcher.webhook.info"
	webhooksPending = "dispatcher.webhooks.pending"
)

// webhookMetrics are the instruments of calls and of the attempts inside of them.
type webhookMetrics struct {
	calls, shadow, errors, attempts, refused, disagreed, misread, operation counters
	call                                                                    histograms
}

func (m *webhookMetrics) families() []Family {
	return []Family{
		{"dispatcher.webhook.calls", Counter, "{call}", labels(configuration(), webhook(), phase(), outcome()),
			"Invocations by what they came to. A reinvocation counts again. `softened`: the mode Warn made a warning of a denial; `abandoned`: another webhook's denial was answered first; `skipped`: not called, visibly. The mode Shadow counts in `dispatcher_shadow_total`.", &m.calls},
		{"dispatcher.shadow", Counter, "{call}", labels(configuration(), webhook(), phase(), shadowOutcome()),
			"Invocations in the mode Shadow by what they would have come to in the mode Enforce: `denied`, `refused` and `failed` would have blocked. `dropped`: not called, because `limits.shadowCalls` were under way.", &m.shadow},
		{"dispatcher.webhook.call.duration", Histogram, "s", labels(configuration(), webhook(), phase()),
			"Time from the beginning of a call to its answer, with retries and hedges; of a call that timed out, the time that it had. Left out are webhooks that were not called, and calls that were given up on because another webhook's denial was answered: those of a slow webhook beside one that denies (`abandoned` in `dispatcher_webhook_calls_total`).", &m.call},
		{"dispatcher.webhook.errors", Counter, "{call}", labels(configuration(), webhook(), phase(), cause()),
			"Invocations that ended without a usable answer, or were refused, by cause, whatever came of it.", &m.errors},
		{"dispatcher.webhook.attempts", Counter, "{attempt}", labels(configuration(), webhook(), kind()),
			"HTTP tries.", &m.attempts},
		{"dispatcher.webhook.budget_refused", Counter, "{attempt}", labels(configuration(), webhook()),
			"Retries and hedges that were not made because the budget of extra attempts was spent.", &m.refused},
		{"dispatcher.webhook.disagreements", Counter, "{call}", labels(configuration(), webhook()),
			"Calls of which two attempts gave different verdicts.", &m.disagreed},
		{"dispatcher.webhook.misread", Counter, "{call}", labels(configuration(), webhook()),
			"Calls whose webhook did not read the form that its own answers offer; reviews go to it in plain JSON for a while.", &m.misread},
		{"dispatcher.webhook.patch_operations", Counter, "{operation}", labels(configuration(), webhook()),
			"JSON patch operations that were applied.", &m.operation},
		{webhookInfo, ObservedGauge, "", labels(configuration(), webhook(), phase(), named("target")),
			"1 for every webhook that takes part, with where it is served: joins the families with `webhook` to those with `target`.", nil},
		{webhooksPending, ObservedGauge, "{webhook}", nil,
			"New or changed webhooks that do not take part yet because nobody answers where they are to be served.", nil},
	}
}

// outcome counts one invocation.
func (m *Metrics) outcome(ctx context.Context, c *clusterSets, w *webhookSets, o *dispatcher.Outcome, answered *moment) {
	w.calls[o.Result].point().Add(1)
	if o.Timed() && o.Elapsed > 0 {
		m.call.record(ctx, w.duration, o.Elapsed, answered)
	}
	if o.Operations > 0 {
		w.patched.point().Add(int64(o.Operations))
	}
	if o.Cause == "" {
		return
	}
	cause := attribute.String("cause", string(o.Cause))
	m.errors.with(w.names[0], w.names[1], w.phase, cause).point().Add(1)
	if o.FailsOpen() {
		m.failOpen.with(c.name, w.names[0], w.names[1], cause).point().Add(1)
	}
}

// ObserveShadow implements dispatcher.ShadowObserver.
func (m *Metrics) ObserveShadow(_ context.Context, r *dispatcher.ShadowRecord) {
	word := r.Outcome.Result.String()
	if r.Dropped {
		word = droppedShadow
	}
	w := m.sets.newest().webhook(m, r.Outcome.Webhook, r.Phase)
	m.shadow.with(w.names[0], w.names[1], w.phase, attribute.String("outcome", word)).point().Add(1)
}

// Attempted implements transport.Observer.
func (m *Metrics) Attempted(_ context.Context, a transport.Attempt) {
	m.sets.newest().caller(m, a.Owner)[a.Kind].point().Add(1)
}

// Refused implements transport.Observer.
func (m *Metrics) Refused(_ context.Context, owner hook.ID) {
	m.refused.with(names(owner)...).point().Add(1)
}

// Disagreed implements transport.Observer.
func (m *Metrics) Disagreed(_ context.Context, owner hook.ID) {
	m.disagreed.with(names(owner)...).point().Add(1)
}

// Misread implements transport.Observer.
func (m *Metrics) Misread(_ context.Context, owner hook.ID) {
	m.misread.with(names(owner)...).point().Add(1)
}
