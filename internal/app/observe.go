// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// observers are told of every admission.
func (a *App) observers() []dispatcher.Observer {
	list := []dispatcher.Observer{a.status}
	if !environment().Disabled() {
		list = append(list, a.metrics)
	}
	if a.decisions != nil {
		list = append(list, a.decisions)
	}
	return list
}

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

func environment() otlp.Environment { return os.Getenv }

// wireTelemetry makes what watches the others.
func (a *App) wireTelemetry(o Options) (err error) {
	if err := environment().Check(); err != nil {
		return err
	}
	if a.metrics, err = metrics.New(metrics.Config{Environment: environment(), Version: o.Version, Logger: a.log}); err != nil {
		return err
	}
	traces := tracing.Config{
		Environment: environment(),
		UserNames:   a.cfg.Telemetry.UserNames,
		Version:     o.Version,
		Logger:      a.log,
	}
	if o.Spans != nil {
		traces.Exporter, traces.Delay = o.Spans, 50*time.Millisecond
	}
	if a.tracing, err = tracing.New(traces); err != nil {
		return err
	}
	return a.openDecisionLog()
}

// openDecisionLog opens the decision log if there is to be one.
func (a *App) openDecisionLog() error {
	cfg := a.cfg.Telemetry.DecisionLog
	if cfg.File == "" {
		return nil
	}
	file, err := decisionlog.OpenFile(cfg.File, int64(cfg.MaxBytes), cfg.MaxFiles)
	if err != nil {
		return err
	}
	a.decisions, err = decisionlog.New(decisionlog.Config{
		Out:     file,
		Allows:  cfg.Allows,
		Objects: cfg.Objects,
		Mask:    cfg.Mask,
	})
	return err
}

// closeTelemetry sends what is waiting, all sinks at once: those that hang do not
// add up.
func (a *App) closeTelemetry() {
	var closing sync.WaitGroup
	closing.Go(a.decisions.Close)
	closing.Go(a.tracing.Close)
	closing.Go(a.metrics.Close)
	closing.Wait()
}

// callObserver is told what calls do: it counts that, and logs when the form changes
// in which a webhook is sent reviews.
type callObserver struct {
	counters
	log *slog.Logger
}

// counters are what counts of a webhook.Observer.
type counters interface {
	Attempted(ctx context.Context, a transport.Attempt)
	Refused(ctx context.Context, owner any)
	Disagreed(ctx context.Context, owner any)
	Misread(ctx context.Context, owner any)
}

// Switched implements webhook.Observer.
func (o callObserver) Switched(ctx context.Context, s transport.Switch) {
	attrs := []slog.Attr{slog.String("url", s.Target.URL()), slog.String("reads", s.Reads)}
	if w, ok := s.Owner.(*chain.Entry); ok {
		attrs = append(attrs, slog.String("configuration", w.Configuration), slog.String("webhook", w.Name))
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
	leftOut, ok := 0, false
	if c.Cluster == "" {
		leftOut, ok = o.targets.Pass(t.URL(), time.Now())
	} else {
		leftOut, ok = o.clusters.Pass(c.Cluster, time.Now())
		attrs = append(attrs, slog.String("cluster", c.Cluster))
	}
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
