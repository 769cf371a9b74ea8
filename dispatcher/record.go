// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// maxLogged bounds what a user or a webhook can put into one log attribute.
const maxLogged = 512

// record logs one admission: whatever failed open always, denials up to a rate of
// each cluster, a bypass now and then, an allow when debugging. Nothing from inside an object is logged, and
// no message of a webhook: it is for the user, and may quote the object.
func (d *Dispatcher) record(ctx context.Context, req Request, v *Verdict, elapsed time.Duration) {
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if o.Cause == hook.Panic {
			d.recordCallPanic(ctx, o)
		}
		switch o.Result {
		case Softened:
			d.recordUnheard(ctx, req, o, slog.LevelInfo, "webhook softened")
		case FailedOpen, Skipped:
			d.recordUnheard(ctx, req, o, slog.LevelWarn, "webhook "+o.Result.String())
		}
	}
	if v.Bypass != "" {
		d.recordBypass(ctx, req, v.Bypass)
		return
	}
	if v.Response.Allowed {
		d.recordAllow(ctx, req, v, elapsed)
		return
	}
	d.recordDenial(ctx, req, v, elapsed)
}

// denialsPerSecond is how many denials of one cluster get a line in each second.
const denialsPerSecond = 100

func (d *Dispatcher) recordDenial(ctx context.Context, req Request, v *Verdict, elapsed time.Duration) {
	if !d.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	leftOut, ok := d.denials.Pass(req.Cluster.Name, time.Now())
	if !ok {
		return
	}
	attrs := append(decidedAttrs(req, v, elapsed), slog.String("decision", v.Decision().String()), slog.Int("code", int(v.Response.Code)))
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	d.log.LogAttrs(ctx, slog.LevelInfo, "admission denied", append(attrs, denialAttrs(v)...)...)
}

// denialAttrs say who denied, and what was wrong where that was no decision.
func denialAttrs(v *Verdict) []slog.Attr {
	var by, problems []string
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if !o.Denies() {
			continue
		}
		by = append(by, o.denier())
		if o.Err != nil {
			problems = append(problems, o.Webhook.Name+": "+o.Err.Error())
		}
	}
	if v.Unreadable {
		return []slog.Attr{slog.String("error", cutBytes(v.Defect, maxLogged))}
	}
	if len(by) == 0 { // the message is our own
		return []slog.Attr{slog.String("error", cutBytes(v.Response.Message, maxLogged))}
	}
	attrs := []slog.Attr{slog.String("by", cutBytes(strings.Join(by, "; "), maxLogged))}
	if len(problems) > 0 {
		attrs = append(attrs, slog.String("error", cutBytes(strings.Join(problems, "; "), maxLogged)))
	}
	return attrs
}

// recordAllow logs an allow if it is one of the sample, or when debugging.
func (d *Dispatcher) recordAllow(ctx context.Context, req Request, v *Verdict, elapsed time.Duration) {
	level := slog.LevelInfo
	leftOut, ok := 0, false
	if d.allows.Burst > 0 {
		leftOut, ok = d.allows.Pass(time.Now())
	}
	if !ok {
		level = slog.LevelDebug
	}
	if !d.log.Enabled(ctx, level) {
		return
	}
	attrs := decidedAttrs(req, v, elapsed)
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	d.log.LogAttrs(ctx, level, "admission allowed", attrs...)
}

func decidedAttrs(req Request, v *Verdict, elapsed time.Duration) []slog.Attr {
	return append(admissionAttrs(req), slog.Float64("elapsed_seconds", elapsed.Seconds()), slog.Int("outcomes", len(v.Outcomes)))
}

// recordUnheard logs that a webhook did not have its say and that this did not
// decide.
func (d *Dispatcher) recordUnheard(ctx context.Context, req Request, o *Outcome, level slog.Level, message string) {
	attrs := append(admissionAttrs(req), outcomeAttrs(o.Webhook, o.Err)...)
	attrs = append(attrs,
		slog.String("cause", causeType(o)),
		slog.String("policy", o.policy()),
		slog.String("mode", o.Webhook.Mode.String()),
		slog.Float64("elapsed_seconds", o.Elapsed.Seconds()))
	d.log.LogAttrs(ctx, level, message, attrs...)
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
	attrs := append(outcomeAttrs(w, nil), slog.String("cluster", cluster.Name), slog.Int("limit", d.shadowCalls))
	d.log.LogAttrs(ctx, slog.LevelWarn, "shadow call dropped: too many under way", attrs...)
}

// recordPanic logs a panic of ours. The line on the denial follows.
func (d *Dispatcher) recordPanic(ctx context.Context, text string, stack []byte) {
	d.log.LogAttrs(ctx, slog.LevelError, "panic while deciding an admission", slog.String("panic", text), slog.String("stack", string(stack)))
}

func (d *Dispatcher) recordCallPanic(ctx context.Context, o *Outcome) {
	attrs := outcomeAttrs(o.Webhook, o.Err)
	var call *hook.CallError
	if errors.As(o.Err, &call) {
		attrs = append(attrs, slog.String("stack", string(call.Stack)))
	}
	d.log.LogAttrs(ctx, slog.LevelError, "panic while calling a webhook", attrs...)
}

func admissionAttrs(req Request) []slog.Attr {
	r := req.Review
	attr := func(key string, value []byte) slog.Attr {
		return slog.String(key, string(value[:min(len(value), maxLogged)]))
	}
	return []slog.Attr{
		slog.String("cluster", req.Cluster.Name),
		slog.String("phase", req.Phase.String()),
		slog.String("snapshot", req.Snapshot),
		attr("uid", r.UID),
		slog.String("operation", r.Operation.String()),
		attr("group", r.Resource.Group),
		attr("version", r.Resource.Version),
		attr("resource", r.Resource.Resource),
		attr("subresource", r.SubResource),
		attr("namespace", r.Namespace),
		attr("name", r.Name),
	}
}

func outcomeAttrs(w *chain.Entry, err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("configuration", w.Configuration), slog.String("webhook", w.Name)}
	if err != nil {
		attrs = append(attrs, slog.String("error", cutBytes(err.Error(), maxLogged)))
	}
	return attrs
}
