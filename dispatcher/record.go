// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// Record is what there is to tell of one admission.
type Record struct {
	Request
	Verdict *Verdict
	Start   time.Time
	Elapsed time.Duration
}

// End is when the verdict was there.
func (r *Record) End() time.Time { return r.Start.Add(r.Elapsed) }

// Observer is notified of every admission once it is decided, on the goroutine that
// answers it: it must be quick, and must not block. The Record with everything
// that hangs off it is borrowed until Observe returns.
type Observer interface {
	Observe(ctx context.Context, r *Record)
}

// recorder tells what was decided: to the log, within rates, and to observers.
type recorder struct {
	log       *slog.Logger
	observers []Observer
	bypasses  bypassLog
	allows    throttle.Throttle // lines about them, all clusters'
	denials   throttle.PerCluster
	records   sync.Pool // of *Record
}

// publish logs the decision and tells the observers of it.
func (c *recorder) publish(ctx context.Context, req Request, v *Verdict, start time.Time) {
	r := c.records.Get().(*Record)
	*r = Record{Request: req, Verdict: v, Start: start, Elapsed: time.Since(start)}
	c.record(ctx, r)
	for _, o := range c.observers {
		o.Observe(ctx, r)
	}
	*r = Record{}
	c.records.Put(r)
}

// maxLogged bounds what a user or a webhook can put into one log attribute.
const maxLogged = 512

// record logs one admission: whatever failed open always, denials up to a rate of
// each cluster, a bypass now and then, an allow when debugging. Nothing from inside an object is logged, and
// no message of a webhook: it is for the user, and may quote the object.
func (c *recorder) record(ctx context.Context, r *Record) {
	v := r.Verdict
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if o.Cause == hook.Panic {
			c.callPanic(ctx, o)
		}
		switch o.Result {
		case Softened:
			c.unheard(ctx, r, o, slog.LevelInfo, "webhook softened")
		case FailedOpen, Skipped:
			c.unheard(ctx, r, o, slog.LevelWarn, "webhook "+o.Result.String())
		}
	}
	if v.Bypass != "" {
		c.bypass(ctx, r)
		return
	}
	if v.Response.Allowed {
		c.allow(ctx, r)
		return
	}
	c.denial(ctx, r)
}

// denialsPerSecond is how many denials of one cluster get a line in each second.
const denialsPerSecond = 100

func (c *recorder) denial(ctx context.Context, r *Record) {
	if !c.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	leftOut, ok := c.denials.Pass(r.Cluster.Name, r.End())
	if !ok {
		return
	}
	attrs := append(decidedAttrs(r), slog.String("decision", r.Verdict.Decision().String()), slog.Int("code", int(r.Verdict.Response.Code)))
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "admission denied", append(attrs, denialAttrs(r.Verdict)...)...)
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
			problems = append(problems, o.Webhook.Label()+": "+o.Err.Error())
		}
	}
	if v.Unreadable {
		return []slog.Attr{slog.String("error", cutBytes(v.Defect, maxLogged))}
	}
	if len(by) == 0 { // the message is our own
		return []slog.Attr{slog.String("error", cutBytes(v.Response.Message, maxLogged))}
	}
	attrs := []slog.Attr{slog.String("by", listUpTo(by, maxLogged))}
	if len(problems) > 0 {
		attrs = append(attrs, slog.String("error", cutBytes(strings.Join(problems, "; "), maxLogged)))
	}
	return attrs
}

// allow logs an allow if it is one of the sample, or when debugging.
func (c *recorder) allow(ctx context.Context, r *Record) {
	level := slog.LevelInfo
	leftOut, ok := 0, false
	if c.allows.Burst > 0 {
		leftOut, ok = c.allows.Pass(r.End())
	}
	if !ok {
		level = slog.LevelDebug
	}
	if !c.log.Enabled(ctx, level) {
		return
	}
	attrs := decidedAttrs(r)
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	c.log.LogAttrs(ctx, level, "admission allowed", attrs...)
}

func decidedAttrs(r *Record) []slog.Attr {
	return append(admissionAttrs(&r.Request), slog.Float64("elapsed_seconds", r.Elapsed.Seconds()), slog.Int("outcomes", len(r.Verdict.Outcomes)))
}

// unheard logs that a webhook did not have its say and that this did not
// decide.
func (c *recorder) unheard(ctx context.Context, r *Record, o *Outcome, level slog.Level, message string) {
	attrs := append(admissionAttrs(&r.Request), outcomeAttrs(o.Webhook, o.Err)...)
	attrs = append(attrs,
		slog.String("cause", causeType(o)),
		slog.String("policy", o.policy()),
		slog.String("mode", o.Webhook.Mode.String()),
		slog.Float64("elapsed_seconds", o.Elapsed.Seconds()))
	c.log.LogAttrs(ctx, level, message, attrs...)
}

// panicked logs a panic of ours. The line on the denial follows.
func (c *recorder) panicked(ctx context.Context, text string, stack []byte) {
	c.log.LogAttrs(ctx, slog.LevelError, "panic while deciding an admission", slog.String("panic", text), slog.String("stack", string(stack)))
}

func (c *recorder) callPanic(ctx context.Context, o *Outcome) {
	attrs := outcomeAttrs(o.Webhook, o.Err)
	var call *hook.CallError
	if errors.As(o.Err, &call) {
		attrs = append(attrs, slog.String("stack", string(call.Stack)))
	}
	c.log.LogAttrs(ctx, slog.LevelError, "panic while calling a webhook", attrs...)
}

func admissionAttrs(req *Request) []slog.Attr {
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

// bypassInterval is the time between two log lines about one rule in one cluster:
// leases alone are renewed many times a second.
const bypassInterval = time.Minute

// bypassLog says that a bypass is in use without a line for each request.
type bypassLog struct {
	mu    sync.Mutex
	rules map[string]*throttle.PerCluster // by name, which the configuration gives
}

// count notes one more bypass and returns how many there were since the last
// line, if it is time for another.
func (l *bypassLog) count(cluster, rule string, now time.Time) (requests int, due bool) {
	before, due := l.of(rule).Pass(cluster, now)
	if !due {
		return 0, false
	}
	return before + 1, true
}

func (l *bypassLog) of(rule string) *throttle.PerCluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.rules[rule]
	if p == nil {
		p = &throttle.PerCluster{Burst: 1, Window: bypassInterval}
		if l.rules == nil {
			l.rules = map[string]*throttle.PerCluster{}
		}
		l.rules[rule] = p
	}
	return p
}

// bypass logs a bypass, with the request that it let pass, at most once per
// interval for a rule in a cluster.
func (c *recorder) bypass(ctx context.Context, r *Record) {
	requests, due := c.bypasses.count(r.Cluster.Name, r.Verdict.Bypass, r.End())
	if !due {
		return
	}
	attrs := append(admissionAttrs(&r.Request), slog.String("rule", r.Verdict.Bypass), slog.Int("requests", requests))
	c.log.LogAttrs(ctx, slog.LevelInfo, "admissions bypassed", attrs...)
}
