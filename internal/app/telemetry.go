// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// telemetry is what watches the others.
type telemetry struct {
	metrics   *metrics.Metrics
	tracing   *tracing.Tracing // nil: nothing is traced
	decisions *decisionlog.Log // nil: there is none
	lines     func() int64     // of the log that were dropped; nil: none are
}

func environment() otlp.Environment { return os.Getenv }

// open makes what the configuration and the environment ask for. What there is after
// an error is closed, too.
func (t *telemetry) open(cfg config.Telemetry, o Options) (err error) {
	if err := environment().Check(); err != nil {
		return err
	}
	if t.metrics, err = metrics.New(metrics.Config{Environment: environment(), Version: o.Version, Logger: o.Logger}); err != nil {
		return err
	}
	traces := tracing.Config{
		Environment: environment(),
		UserNames:   cfg.UserNames,
		Version:     o.Version,
		Logger:      o.Logger,
	}
	if o.Spans != nil {
		traces.Exporter, traces.Delay = o.Spans, 50*time.Millisecond
	}
	if t.tracing, err = tracing.New(traces); err != nil {
		return err
	}
	t.lines = o.Dropped
	return t.openDecisionLog(cfg.DecisionLog)
}

// openDecisionLog opens the decision log if there is to be one.
func (t *telemetry) openDecisionLog(cfg config.DecisionLog) error {
	if cfg.File == "" {
		return nil
	}
	file, err := decisionlog.OpenFile(cfg.File, int64(cfg.MaxBytes), cfg.MaxFiles)
	if err != nil {
		return err
	}
	t.decisions, err = decisionlog.New(decisionlog.Config{
		Out:     file,
		Allows:  cfg.Allows,
		Objects: cfg.Objects,
		Mask:    cfg.Mask,
	})
	return err
}

// close sends what is waiting, all sinks at once: those that hang do not
// add up.
func (t *telemetry) close() {
	var closing sync.WaitGroup
	closing.Go(t.decisions.Close)
	closing.Go(t.tracing.Close)
	closing.Go(t.metrics.Close)
	closing.Wait()
}

// observers are told of every admission.
func (t *telemetry) observers(status *status.Collector) []dispatcher.Observer {
	list := []dispatcher.Observer{status}
	if !environment().Disabled() {
		list = append(list, t.metrics)
	}
	if t.decisions != nil {
		list = append(list, t.decisions)
	}
	return list
}

// calls is told what calls do; where OpenTelemetry is switched off it only
// logs.
func (t *telemetry) calls(log *slog.Logger) transport.Observer {
	if environment().Disabled() {
		return callObserver{transport.Silent{}, log}
	}
	return callObserver{t.metrics, log}
}

// asked is told what the authorizers of clusters are asked.
func (t *telemetry) asked() func(string, kube.AccessResult, time.Duration) {
	if environment().Disabled() {
		return nil
	}
	return func(cluster string, came kube.AccessResult, took time.Duration) {
		t.metrics.AccessReviewed(cluster, string(came), took)
	}
}

// circuits is told of changes of circuits.
func (t *telemetry) circuits(log *slog.Logger) *circuitObserver {
	o := &circuitObserver{log: log, count: func(string, breaker.Change) {}}
	if !environment().Disabled() {
		o.count = t.metrics.CircuitChanged
	}
	o.clusters.Burst, o.targets.Burst = circuitLines, circuitLines
	return o
}

// dropped returns what telemetry has given up, by signal.
func (t *telemetry) dropped() map[string]int64 {
	dropped := map[string]int64{"spans": t.tracing.Dropped(), "decisions": t.decisions.Dropped(), "metrics": t.metrics.Dropped()}
	if t.lines != nil {
		dropped["logs"] = t.lines()
	}
	return dropped
}

// stale returns whether what is known of the namespaces of each cluster is stale.
func stale(list []kube.Status) map[string]bool {
	stale := map[string]bool{}
	for _, s := range list {
		stale[s.Cluster] = s.Stale
	}
	return stale
}

// objectsOf returns what is known of the objects of each cluster and resource.
func objectsOf(list []kube.Status) (all []metrics.Objects) {
	for _, s := range list {
		all = append(all, metrics.Objects{
			Cluster: s.Cluster, Resource: s.Resource, Stale: s.Stale,
			Cached: s.Objects - s.Unkept, Bytes: s.Bytes, Requests: s.LiveGets,
		})
	}
	return all
}

// build says what was built: the version as it was stamped, the rest as far as
// the binary knows.
func build(version string, read func() (*debug.BuildInfo, bool)) metrics.Build {
	b := metrics.Build{Version: version, Go: runtime.Version()}
	info, ok := read()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
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
