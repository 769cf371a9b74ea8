// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/excerpt"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// Decider decides admissions; *dispatcher.Dispatcher does.
type Decider interface {
	Dispatch(ctx context.Context, req dispatcher.Request, v *dispatcher.Verdict)
	Decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect, v *dispatcher.Verdict)
}

// Wrap returns next with a server span around each decision; next itself where
// nothing is traced.
func (t *Tracing) Wrap(next Decider) Decider {
	if t == nil {
		return next
	}
	return tracedDecider{t, next}
}

type tracedDecider struct {
	tracing *Tracing
	next    Decider
}

// Dispatch implements Decider.
func (d tracedDecider) Dispatch(ctx context.Context, req dispatcher.Request, v *dispatcher.Verdict) {
	ctx, span := d.tracing.start(ctx, req)
	d.next.Dispatch(ctx, req, v)
	conclude(span, v)
}

// Decline implements Decider.
func (d tracedDecider) Decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect, v *dispatcher.Verdict) {
	ctx, span := d.tracing.start(ctx, req)
	d.next.Decline(ctx, req, defect, v)
	conclude(span, v)
}

// start begins the span of an admission. Where it is not sampled there is none:
// nil. Where the caller has decided against it, the caller's context goes on to the
// webhooks.
func (t *Tracing) start(ctx context.Context, req dispatcher.Request) (context.Context, trace.Span) {
	if t.obedient && tracecontext.IsUnsampled(ctx) {
		return ctx, nil
	}
	if parent := trace.SpanContextFromContext(ctx); t.obedient && parent.IsValid() && !parent.IsSampled() {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, route(req).name, trace.WithSpanKind(trace.SpanKindServer), arrival(req))
	if !span.IsRecording() {
		return ctx, nil
	}
	span.SetAttributes(t.requestAttributes(req)...)
	return ctx, span
}

// routeNames are the words of semantic conventions for a phase's URL.
type routeNames struct{ name, route string }

func route(req dispatcher.Request) routeNames {
	path := "/v1/clusters/{cluster}/" + req.Phase.String()
	return routeNames{http.MethodPost + " " + path, path}
}

// arrival has the span begin with the request: reading and decoding it takes
// longer than deciding where reviews are large.
func arrival(req dispatcher.Request) trace.SpanStartEventOption {
	if req.Arrived.IsZero() {
		return trace.WithTimestamp(time.Now())
	}
	return trace.WithTimestamp(req.Arrived)
}

// serverAttributes say whom the caller called, as HTTP's semantic conventions want
// it; none where that is no host.
func serverAttributes(host []byte) []attribute.KeyValue {
	u, err := url.Parse("https://" + excerpt.Of(host))
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = 443
	}
	name := excerpt.Cut(u.Hostname(), excerpt.Max) // %ff is a host, too
	return []attribute.KeyValue{attribute.String("server.address", name), attribute.Int("server.port", port)}
}

// urlPath is the path that was called, cut where it names many webhooks.
func urlPath(req dispatcher.Request) string {
	path := "/v1/clusters/" + req.Cluster.Name + "/" + req.Phase.String()
	if req.Path != nil && req.Path.Segment != "" {
		path = excerpt.Cut(path+"/"+req.Path.Segment, excerpt.Max)
	}
	return path
}

// requestAttributes say what is to be decided: nothing from inside an object, and
// who asks only if that is switched on.
func (t *Tracing) requestAttributes(req dispatcher.Request) []attribute.KeyValue {
	r := req.Review
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", http.MethodPost),
		attribute.String("http.route", route(req).route),
		attribute.String("url.scheme", "https"),
		attribute.String("url.path", urlPath(req)),
		attribute.String("k8s.cluster.name", req.Cluster.Name),
		attribute.String("admission.uid", excerpt.Of(r.UID)),
		attribute.String("admission.phase", req.Phase.String()),
		attribute.String("admission.operation", r.Operation.String()),
		attribute.String("admission.resource.group", excerpt.Of(r.Resource.Group)),
		attribute.String("admission.resource.version", excerpt.Of(r.Resource.Version)),
		attribute.String("admission.resource.name", excerpt.Of(r.Resource.Resource)),
		attribute.Bool("admission.dry_run", r.DryRun),
		attribute.String("admission.snapshot", req.Snapshot),
	}
	if len(r.Namespace) > 0 {
		attrs = append(attrs, attribute.String("k8s.namespace.name", excerpt.Of(r.Namespace)))
	}
	if len(r.SubResource) > 0 {
		attrs = append(attrs, attribute.String("admission.subresource", excerpt.Of(r.SubResource)))
	}
	if t.userNames {
		attrs = append(attrs, attribute.String("user.name", excerpt.Of(r.User.Username)))
	}
	return append(attrs, serverAttributes(req.Host)...)
}

// conclude says what was decided, and ends the span. A denial is no error; that a
// webhook was not heard, and that this decided, is one. It is not deferred: End
// would write the value of a panic into the span, which may quote an object.
func conclude(span trace.Span, v *dispatcher.Verdict) {
	if span == nil {
		return
	}
	defer span.End()
	word := v.Decision()
	span.SetAttributes(
		attribute.Int("http.response.status_code", http.StatusOK),
		attribute.String("admission.decision", word.String()),
		attribute.Bool("admission.fail_open", v.FailedOpen()),
		attribute.Bool("admission.shed", v.Shed()),
	)
	if !v.Response.Allowed {
		span.SetAttributes(attribute.Int("admission.code", int(v.Response.Code)))
	}
	if v.Bypass != "" {
		span.SetAttributes(attribute.String("admission.bypass", v.Bypass))
	}
	switch word {
	case dispatcher.DecisionFailed:
		span.SetAttributes(attribute.String("error.type", causeOf(v)))
		span.SetStatus(codes.Error, "a webhook was not heard")
	case dispatcher.DecisionPanicked:
		span.SetAttributes(attribute.String("error.type", "panic"))
		span.SetStatus(codes.Error, "the dispatcher failed")
	}
}

// causeOf returns why the first webhook that decided by its silence was not heard.
func causeOf(v *dispatcher.Verdict) string {
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Result == dispatcher.Failed && o.Denies() {
			return string(o.Cause)
		}
	}
	return ""
}
