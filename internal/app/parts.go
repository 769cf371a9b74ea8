// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec/native"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/admin"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// parts are what decides about admissions and what watches that, wired together.
type parts struct {
	cfg          *config.Config
	log          *slog.Logger
	certificates []*certificates // of the admission listener, and of the admin listener if it has any
	state        *state

	fleet       *fleet.Fleet
	telemetry   telemetry
	status      *status.Collector
	registry    *registry.Registry
	clusters    *kube.Sources // what is read of their APIs
	authorizers *kube.Authorizers
	resolver    *transport.Resolver
	client      *transport.Client
	dispatcher  *dispatcher.Dispatcher
	workers     *hook.Workers // of plugins
	server      *server.Server
}

// wire makes the parts, from the configuration inwards: telemetry, registry,
// outbound, decision, inbound.
func (p *parts) wire(o Options, admin net.Addr) error {
	if err := p.telemetry.open(p.cfg.Telemetry, o); err != nil {
		return err
	}
	p.wireRegistry(o, admin)
	if err := p.wireDispatcher(); err != nil {
		return err
	}
	p.wireServer()
	return p.watch(o.Version)
}

// keptWorkers is how many goroutines of plugins are kept for the next calls.
const keptWorkers = 64

// wireRegistry makes what keeps the configuration, and the names in it, current.
func (p *parts) wireRegistry(o Options, admin net.Addr) {
	cfg := p.cfg
	p.fleet = fleet.New(fleet.Settings{Replicas: cfg.Fleet.Replicas, File: cfg.Fleet.File, Interval: cfg.ReloadInterval.Duration, Logger: p.log})
	settings := cfg.Registry(ownAddresses(cfg.Listen, admin.String()), p.log)
	p.clusters = kube.New(kube.Config{
		Allowed: settings.Compile.Addresses.Check,
		Logger:  p.log,
	})
	p.authorizers = kube.NewAuthorizers(kube.AuthorizersConfig{
		Allowed: settings.Compile.Addresses.Check,
		Asked:   p.telemetry.asked(),
	})
	p.client = transport.NewClient(transport.ClientConfig{
		Addresses:      settings.Compile.Addresses,
		ConnectTimeout: cfg.Timeouts.Connect.Duration,
		ResponseLimit:  cfg.Limits.ResponseBytes,
		Concurrency:    cfg.Limits.CallsPerEndpoint,
		Allowed:        func() int { return cfg.CallsPerEndpoint(p.fleet.Size()) },
		Observer:       p.telemetry.calls(p.log),
	})
	settings.Resource = func(t *transport.Target) chain.Resource {
		return target{registry.Unconnected{Target: t}, p.resolver, p.client}
	}
	p.workers = hook.NewWorkers(keptWorkers)
	settings.Compile.Client = p.client
	settings.Compile.Plugins, settings.Compile.Workers = o.Plugins, p.workers
	settings.Compile.Namespaces, settings.Compile.Objects = p.clusters.Namespaces, p.clusters.Objects
	settings.Compile.Kinds, settings.Compile.Authorizer = p.clusters.Kinds, p.authorizers.Authorizer
	settings.Replicas = p.fleet.Size
	settings.Changed = func(c registry.Change) { p.status.Changed(c) }
	p.registry = registry.New(settings)
	p.status = status.New(status.Config{
		Version:      o.Version,
		Registry:     p.registry,
		Unready:      p.unready,
		Namespaces:   p.clusters.Status,
		Objects:      p.clusters.ObjectsStatus,
		Authorizers:  p.authorizers.Status,
		Certificates: func() []status.Certificate { return statusOf(p.certificates) },
		Mirror:       p.mirror,
	})
	p.resolver = transport.NewResolver(transport.ResolverConfig{
		Targets:   p.registry.Targets,
		Addresses: settings.Compile.Addresses,
		Interval:  cfg.DNS.Interval.Duration,
		Timeout:   cfg.DNS.Timeout.Duration,
		Server:    cfg.DNS.Server,
		Warm:      p.client.Warm,
		Circuits:  p.telemetry.circuits(p.log).changed,
		Replicas:  p.fleet.Size,
	})
}

func (p *parts) wireDispatcher() (err error) {
	cfg := p.cfg
	p.dispatcher, err = dispatcher.New(dispatcher.Config{
		Transcoder:      native.New(),
		Grace:           cfg.Deadline.Grace.Duration,
		Impatience:      cfg.Deadline.Impatience.Duration,
		AllowsPerSecond: cfg.Log.AllowsPerSecond,
		Limits: overload.Limits{
			Admissions:  cfg.Limits.Admissions,
			PerCluster:  cfg.Limits.AdmissionsPerCluster,
			Bytes:       int64(cfg.Limits.ReviewBytes),
			ShadowCalls: cfg.Limits.ShadowCalls,
		},
		Observers: p.telemetry.observers(p.status),
		Shadows:   []dispatcher.ShadowObserver{p.telemetry.metrics, p.status},
		KeepSkips: p.telemetry.decisions != nil,
		Logger:    p.log,
	})
	if err != nil {
		return err
	}
	p.dispatcher.LimitCluster(cfg.AdmissionsPerCluster(p.fleet.Size()))
	return nil
}

// resized follows the number of replicas: this one's part of what is limited in all of
// them, and connections that those which joined should have.
func (p *parts) resized(c fleet.Change) {
	p.dispatcher.LimitCluster(p.cfg.AdmissionsPerCluster(c.Size))
	if c.Joined {
		p.server.Joined()
	}
}

func (p *parts) wireServer() {
	cfg := p.cfg
	p.server = server.New(server.Config{
		TLS:            p.certificates[0].config(),
		Authorities:    p.certificates[0].trusted,
		Snapshot:       p.registry.Acquire,
		Decider:        p.telemetry.tracing.Wrap(p.dispatcher),
		Logger:         p.log,
		Observer:       p.telemetry.metrics,
		BodyLimit:      cfg.Limits.RequestBytes,
		BodyBytes:      int64(cfg.Limits.BodyBytes),
		Decompress:     cfg.Limits.DecompressRequests,
		Connections:    connections(cfg.Limits.Connections, p.log),
		ConnectionAge:  cfg.Limits.ConnectionAge.Duration,
		HeaderTimeout:  cfg.Timeouts.Headers.Duration,
		BodyTimeout:    cfg.Timeouts.Body.Duration,
		IdleTimeout:    cfg.Timeouts.Idle.Duration,
		DefaultTimeout: cfg.Deadline.Default.Duration,
		MaxTimeout:     cfg.Deadline.Max.Duration,
	})
}

// watch has the metrics read what is now whenever somebody scrapes.
func (p *parts) watch(version string) error {
	return p.telemetry.metrics.Watch(metrics.Source{
		Registry:     p.registry,
		InFlight:     p.dispatcher.InFlight,
		Connections:  p.server.Connections,
		Aged:         p.server.ConnectionsAged,
		BodyBytes:    p.server.BodyBytes,
		Limits:       p.limits,
		Replicas:     p.fleet.Size,
		Certificates: func() map[string]time.Time { return expiries(p.certificates, p.registry.Targets()) },
		Namespaces:   func() map[string]bool { return stale(p.clusters.Status()) },
		Objects:      func() []metrics.Objects { return objectsOf(p.clusters.ObjectsStatus()) },
		Mirror:       p.mirror,
		Dropped:      p.telemetry.dropped,
		Build:        build(version, debug.ReadBuildInfo),
	})
}

// mirror returns how the mirror is that the configuration comes from; nil: it does not.
func (p *parts) mirror() *mirrorstatus.Mirror {
	if directory := p.cfg.Mirror(); directory != "" {
		return mirrorstatus.Read(directory)
	}
	return nil
}

// limits returns those in effect, not those that are configured.
func (p *parts) limits() metrics.Limits {
	of := p.dispatcher.Limits()
	return metrics.Limits{
		Connections:           p.server.ConnectionsLimit(),
		BodyBytes:             int64(p.cfg.Limits.BodyBytes),
		InFlight:              of.Admissions,
		InFlightOfEachCluster: of.PerCluster,
	}
}

// probes returns the server of the admin listener.
func (p *parts) probes() *http.Server {
	return admin.New(admin.Config{
		Unready:             p.unready,
		Notes:               p.notes,
		Metrics:             p.telemetry.metrics.Handler(),
		Status:              admin.NewPages(p.status.Status, p.log),
		Profiling:           p.cfg.Admin.Profiling,
		CertificateRequired: p.cfg.Admin.TLS.ClientCAFile != "",
		OpenMetrics:         p.cfg.Admin.OpenMetrics,
		Logger:              p.log,
	})
}

// unready returns why the process should get no traffic.
func (p *parts) unready() []string {
	address, stopping := p.state.now()
	switch {
	case stopping:
		return []string{"stopping"}
	case address != nil:
		return nil
	}
	why := []string{"no configuration has been loaded yet"}
	for _, w := range p.registry.Problems() {
		why = append(why, w.String())
	}
	return why
}

// notes returns what is wrong although the process can do its work. Anybody may read
// it, so it has no word of an API or a webhook: those could pass for ours.
func (p *parts) notes() []string {
	var notes []string
	for _, s := range slices.Concat(p.clusters.Status(), p.clusters.ObjectsStatus()) {
		if s.Stale || s.Credential != "" {
			notes = append(notes, s.String())
		}
	}
	if s := p.registry.Snapshot(); s != nil {
		for _, w := range s.Pending {
			notes = append(notes, fmt.Sprintf("webhook %s is pending: %s", w.Webhook, pendingCause(w.Err)))
		}
	}
	for _, t := range p.registry.Draining() {
		notes = append(notes, fmt.Sprintf("webhook target %s is draining: not yet safe to stop", t.URL()))
	}
	return notes
}

// pendingCause is the cause of a probe that failed; the status has the rest.
func pendingCause(err error) hook.Cause {
	if failed, ok := errors.AsType[*hook.CallError](err); ok {
		return failed.Cause
	}
	return hook.BadAnswer
}
