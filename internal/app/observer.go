// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// callObserver is told what calls do; where OpenTelemetry is switched off it only
// logs.
func (a *App) callObserver() transport.Observer {
	if environment().Disabled() {
		return callObserver{transport.Silent{}, a.log}
	}
	return callObserver{a.metrics, a.log}
}

// circuitObserver is told of changes of circuits.
func (a *App) circuitObserver() *circuitObserver {
	o := &circuitObserver{log: a.log, count: func(string, breaker.Change) {}}
	if !environment().Disabled() {
		o.count = a.metrics.CircuitChanged
	}
	o.clusters.Burst, o.targets.Burst = circuitLines, circuitLines
	return o
}

// callObserver is told what calls do: it counts that, and logs when the form changes
// in which a webhook is sent reviews.
type callObserver struct {
	transport.Observer
	log *slog.Logger
}

// Switched implements transport.Observer.
func (o callObserver) Switched(ctx context.Context, s transport.Switch) {
	attrs := []slog.Attr{
		slog.String("url", s.Target.URL()), slog.String("reads", s.Reads),
		slog.String("configuration", s.Owner.Configuration), slog.String("webhook", s.Owner.Name),
	}
	if s.Err == nil {
		o.log.LogAttrs(ctx, slog.LevelInfo, "a webhook offers another form of reviews", attrs...)
		return
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "a webhook is sent plain reviews again", append(attrs, slog.String("error", s.Err.Error()))...)
}

// circuitLines is how many changes of circuits are logged of a cluster, and of what
// concerns every cluster of a target, in each throttle.Window.
const circuitLines = 20

// circuitObserver counts and logs changes of circuits.
type circuitObserver struct {
	log               *slog.Logger
	count             func(target string, c breaker.Change)
	clusters, targets throttle.PerCluster // by name, by URL
}

// changed is transport.ResolverConfig's Circuits.
func (o *circuitObserver) changed(t *transport.Target, endpoint netip.AddrPort, c breaker.Change) {
	o.count(t.URL(), c)
	attrs := []slog.Attr{slog.String("target", t.URL()), slog.String("endpoint", endpoint.String())}
	lines, key := &o.targets, t.URL()
	if c.Cluster != "" {
		lines, key = &o.clusters, c.Cluster
		attrs = append(attrs, slog.String("cluster", c.Cluster))
	}
	leftOut, ok := lines.Pass(key, time.Now())
	if !ok {
		return
	}
	if c.Resource != "" {
		attrs = append(attrs, slog.String("resource", c.Resource))
	}
	level := slog.LevelInfo
	if c.To == breaker.Open {
		level = slog.LevelWarn
	}
	o.log.LogAttrs(context.Background(), level, "circuit changed", append(attrs, slog.String("from", c.From.String()), slog.String("to", c.To.String()),
		slog.String("why", c.Why), slog.Time("at", c.At), slog.Int("left_out", leftOut))...)
}
