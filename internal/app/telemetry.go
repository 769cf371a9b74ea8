// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
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

// source is what metrics are read from when somebody scrapes.
func (a *App) source(version string) metrics.Source {
	return metrics.Source{
		Registry:     a.registry,
		InFlight:     a.dispatcher.InFlight,
		Connections:  a.server.Connections,
		Aged:         a.server.ConnectionsAged,
		BodyBytes:    a.server.BodyBytes,
		Limits:       a.limits(),
		Certificates: a.expiries,
		Namespaces:   a.staleNamespaces,
		Dropped:      a.dropped,
		Build:        build(version, debug.ReadBuildInfo),
	}
}

// limits are those in effect, not those that are configured.
func (a *App) limits() metrics.Limits {
	l := a.dispatcher.Limits()
	return metrics.Limits{
		Connections:           a.server.ConnectionsLimit(),
		BodyBytes:             int64(a.cfg.Limits.BodyBytes),
		InFlight:              l.Admissions,
		InFlightOfEachCluster: l.PerCluster,
	}
}

// expiries returns when the first certificate of each role expires.
func (a *App) expiries() map[string]time.Time {
	first := map[string]time.Time{}
	a.certificates.expiries(first, "serving", "client_ca")
	if a.adminCertificates != nil {
		a.adminCertificates.expiries(first, "admin_serving", "admin_client_ca")
	}
	for _, t := range a.registry.Targets() {
		at := t.CertificateExpiry()
		if known, ok := first["webhook_client"]; !at.IsZero() && (!ok || at.Before(known)) {
			first["webhook_client"] = at
		}
	}
	return first
}

func (a *App) staleNamespaces() map[string]bool {
	stale := map[string]bool{}
	for _, s := range a.namespaces.Status() {
		stale[s.Cluster] = s.Stale
	}
	return stale
}

// dropped returns what telemetry has given up, by signal.
func (a *App) dropped() map[string]int64 {
	dropped := map[string]int64{"spans": a.tracing.Dropped(), "decisions": a.decisions.Dropped(), "metrics": a.metrics.Dropped()}
	if a.LogDropped != nil {
		dropped["logs"] = a.LogDropped()
	}
	return dropped
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
