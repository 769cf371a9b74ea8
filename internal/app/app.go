// SPDX-License-Identifier: Apache-2.0

// Package app wires the process together and owns its lifecycle.
package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/admission-dispatcher/dispatcher/codec/native"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// App is the process: made by New, run once by Run, and over then.
type App struct {
	cfg   *config.Config
	log   *slog.Logger
	admin net.Listener
	state state

	// loops is the context of everything that goes on in the background. It
	// outlives the one of Run: a lame duck still follows its configuration.
	loops     context.Context
	stopLoops context.CancelFunc

	certificates      *certificates
	adminCertificates *certificates // nil: plain HTTP

	metrics   *metrics.Metrics
	tracing   *tracing.Tracing // nil: nothing is traced
	decisions *decisionlog.Log // nil: there is none
	status    *status.Collector
	// LogDropped, if not nil, returns how many lines the sink of the log has not
	// taken. It is set before Run.
	LogDropped func() int64

	registry   *registry.Registry
	namespaces *kube.Sources
	resolver   *transport.Resolver
	client     *transport.Client
	dispatcher *dispatcher.Dispatcher
	server     *server.Server
}

// Options are what a process is that its configuration does not say.
type Options struct {
	Version string            // what it says it is
	Logger  *slog.Logger      // required
	Spans   *tracing.Recorder // takes the spans of all admissions; default: a collector, if the environment names one
}

// New reads the certificates, binds the admin listener and wires everything. It
// starts nothing, but what it returns must be run. An error names the field of
// the configuration that is at fault.
func New(cfg *config.Config, o Options) (*App, error) {
	log := logging.WithTrace(o.Logger)
	certificates, err := newCertificates(admissionListener, cfg.TLS, log)
	if err != nil {
		return nil, err
	}
	adminCertificates, err := newAdminCertificates(cfg.Admin.TLS, log)
	if err != nil {
		return nil, err
	}
	admin, err := net.Listen("tcp", cfg.Admin.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	a := &App{cfg: cfg, log: log, admin: admin, certificates: certificates, adminCertificates: adminCertificates, state: newState()}
	a.loops, a.stopLoops = context.WithCancel(context.Background())
	if err := a.wire(o); err != nil {
		_ = admin.Close()
		a.closeTelemetry()
		return nil, err
	}
	return a, nil
}

// wire makes the parts, from the configuration inwards: telemetry, registry,
// outbound, decision, inbound.
func (a *App) wire(o Options) error {
	if err := a.wireTelemetry(o); err != nil {
		return err
	}
	a.wireRegistry(o.Version)
	if err := a.wireDispatcher(); err != nil {
		return err
	}
	a.wireServer()
	return a.metrics.Watch(a.source(o.Version))
}

// wireRegistry makes what keeps the configuration, and the names in it, current.
func (a *App) wireRegistry(version string) {
	cfg := a.cfg
	settings := cfg.Registry(ownAddresses(cfg.Listen, a.admin.Addr().String()), a.log)
	a.namespaces = kube.New(kube.Config{
		Allowed: settings.Compile.Addresses.Check,
		Logger:  a.log,
	})
	a.client = transport.NewClient(transport.ClientConfig{
		Addresses:      settings.Compile.Addresses,
		ConnectTimeout: cfg.Timeouts.Connect.Duration,
		ResponseLimit:  cfg.Limits.ResponseBytes,
		Concurrency:    cfg.Limits.CallsPerEndpoint,
		Observer:       a.callObserver(),
	})
	settings.Resource = a.resource
	settings.Compile.Client = a.client
	settings.Compile.Namespaces = a.namespaces.Namespaces
	settings.Changed = func(c registry.Change) { a.status.Changed(c) }
	a.registry = registry.New(settings)
	a.status = a.newStatus(version)
	a.resolver = transport.NewResolver(transport.ResolverConfig{
		Targets:   a.registry.Targets,
		Addresses: settings.Compile.Addresses,
		Interval:  cfg.DNS.Interval.Duration,
		Timeout:   cfg.DNS.Timeout.Duration,
		Server:    cfg.DNS.Server,
		Warm:      a.client.Warm,
		Circuits:  a.circuitObserver().changed,
	})
}

func (a *App) wireDispatcher() (err error) {
	cfg := a.cfg
	a.dispatcher, err = dispatcher.New(dispatcher.Config{
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
		Observers: a.observers(),
		Shadows:   []dispatcher.ShadowObserver{a.metrics, a.status},
		KeepSkips: a.decisions != nil,
		Logger:    a.log,
	})
	return err
}

func (a *App) wireServer() {
	cfg := a.cfg
	a.server = server.New(server.Config{
		TLS:            a.certificates.config(),
		Authorities:    a.certificates.trusted,
		Snapshot:       a.registry.Acquire,
		Decider:        a.tracing.Wrap(a.dispatcher),
		Logger:         a.log,
		Observer:       a.metrics,
		BodyLimit:      cfg.Limits.RequestBytes,
		BodyBytes:      int64(cfg.Limits.BodyBytes),
		Decompress:     cfg.Limits.DecompressRequests,
		Connections:    a.connections(),
		ConnectionAge:  cfg.Limits.ConnectionAge.Duration,
		HeaderTimeout:  cfg.Timeouts.Headers.Duration,
		BodyTimeout:    cfg.Timeouts.Body.Duration,
		IdleTimeout:    cfg.Timeouts.Idle.Duration,
		DefaultTimeout: cfg.Deadline.Default.Duration,
		MaxTimeout:     cfg.Deadline.Max.Duration,
	})
}
