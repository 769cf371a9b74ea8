// SPDX-License-Identifier: Apache-2.0

// Package app wires the process together and owns its lifecycle.
package app

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// firstLookups is how long a start waits for the addresses of webhooks.
const firstLookups = 5 * time.Second

// App is the process. It is made by New, run once by Run, and gone then.
type App struct {
	cfg *config.Config
	log *slog.Logger

	admin net.Listener

	certificates *certificates
	registry     *registry.Registry
	resolver     *webhook.Resolver
	dispatcher   *dispatcher.Dispatcher
	server       *server.Server
	state        state
}

// New binds the admin listener, reads the certificates and wires everything. It
// starts nothing. An error names what in the configuration is at fault.
func New(cfg *config.Config, log *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: log}
	var err error
	if a.certificates, err = newCertificates(cfg.TLS, log); err != nil {
		return nil, err
	}
	if a.admin, err = net.Listen("tcp", cfg.Admin.Listen); err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if err := a.wire(); err != nil {
		_ = a.admin.Close()
		return nil, err
	}
	return a, nil
}

func (a *App) wire() error {
	cfg := a.cfg
	settings := cfg.Registry(a.own(), a.log)
	settings.Prepare = a.prepare
	a.registry = registry.New(settings)
	a.resolver = webhook.NewResolver(webhook.ResolverConfig{
		Targets:   a.registry.Targets,
		Addresses: settings.Addresses,
		Interval:  cfg.DNS.Interval.Duration,
		Timeout:   cfg.DNS.Timeout.Duration,
		Server:    cfg.DNS.Server,
	})
	client := webhook.NewClient(webhook.ClientConfig{
		Addresses:      settings.Addresses,
		ConnectTimeout: cfg.Timeouts.Connect.Duration,
		ResponseLimit:  cfg.Limits.ResponseBytes,
	})
	var err error
	a.dispatcher, err = dispatcher.New(dispatcher.Config{
		Caller:      client,
		Grace:       cfg.Deadline.Grace.Duration,
		ShadowCalls: cfg.Limits.ShadowCalls,
		Logger:      a.log,
	})
	if err != nil {
		return err
	}
	a.server = server.New(server.Config{
		TLS:            a.certificates.config(),
		Snapshot:       a.registry.Snapshot,
		Decider:        a.dispatcher,
		Logger:         a.log,
		BodyLimit:      cfg.Limits.RequestBytes,
		Connections:    cfg.Limits.Connections,
		HeaderTimeout:  cfg.Timeouts.Headers.Duration,
		BodyTimeout:    cfg.Timeouts.Body.Duration,
		IdleTimeout:    cfg.Timeouts.Idle.Duration,
		DefaultTimeout: cfg.Deadline.Default.Duration,
		MaxTimeout:     cfg.Deadline.Max.Duration,
	})
	return nil
}
