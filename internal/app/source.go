// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

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
		Build:        build(version),
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
func build(version string) metrics.Build {
	b := metrics.Build{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
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
