// SPDX-License-Identifier: Apache-2.0

// Package app wires the process together and owns its lifecycle.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

// App is the process: made by New, run once by Run, and over then.
type App struct {
	*parts
	admin *adminListener

	// loops is the context of everything that goes on in the background. It
	// outlives the one of Run: a lame duck still follows its configuration.
	loops     context.Context
	stopLoops context.CancelFunc
}

// Options are what a process is that its configuration does not say.
type Options struct {
	Version string            // what it says it is
	Plugins plugin.Set        // that are compiled in
	Logger  *slog.Logger      // required
	Dropped func() int64      // how many lines the sink of the log has not taken; default: it takes all
	Spans   *tracing.Recorder // takes the spans of all admissions; default: a collector, if the environment names one
}

// New reads the certificates, binds the admin listener and wires everything. It
// starts nothing, but what it returns must be run. An error names the field of
// the configuration that is at fault.
func New(cfg *config.Config, o Options) (*App, error) {
	o.Logger = logging.WithTrace(o.Logger)
	own, err := newCertificates(admissionListener, cfg.TLS, o.Logger)
	if err != nil {
		return nil, err
	}
	admin, err := listenAdmin(cfg.Admin, o.Logger)
	if err != nil {
		return nil, err
	}
	p := &parts{cfg: cfg, log: o.Logger, certificates: append([]*certificates{own}, admin.certificates...), state: newState()}
	if err := p.wire(o, admin.Addr()); err != nil {
		_ = admin.Close()
		p.telemetry.close()
		return nil, err
	}
	a := &App{parts: p, admin: admin}
	a.loops, a.stopLoops = context.WithCancel(context.Background())
	return a, nil
}

// Run serves until ctx is done, then lets go of its callers without losing a
// call, and returns when nothing of the process runs any more. What starts first
// ends last. Reload may be called meanwhile.
func (a *App) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer a.release()
	defer running.Wait()
	defer a.stopLoops()

	for _, w := range a.cfg.Warnings("") {
		a.log.Warn("configuration warning", "field", w.Field, "value", w.Value, "reason", w.Reason)
	}
	probes := a.probes()
	running.Go(func() { a.admin.serve(probes) })
	defer func() { _ = probes.Close() }()

	for _, c := range a.certificates {
		running.Go(func() { c.run(a.loops, a.cfg.ReloadInterval.Duration) })
	}
	running.Go(func() { a.fleet.Run(a.loops, a.resized) })
	running.Go(func() { a.status.Run(a.loops) })
	running.Go(func() { a.clusters.Run(a.loops) })
	running.Go(func() { a.registry.Run(a.loops) })
	if !a.awaitSnapshot(ctx) {
		return nil
	}
	running.Go(func() { a.resolver.Run(a.loops) })
	running.Go(func() { a.lookout().run(a.loops) })
	return a.serve(ctx)
}

// snapshotInterval is the time between two looks for the first Snapshot.
const snapshotInterval = 50 * time.Millisecond

// awaitSnapshot returns when there is a configuration to serve, or false when
// ctx is done first. Without one nothing is accepted: for a caller that cannot
// connect its own failure policy speaks; it would not for one that is allowed
// because there are no policies.
func (a *App) awaitSnapshot(ctx context.Context) bool {
	ticker := time.NewTicker(snapshotInterval)
	defer ticker.Stop()
	for a.registry.Snapshot() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return ctx.Err() == nil
}

// serve opens the admission listener, and closes it gently when ctx is done.
func (a *App) serve(ctx context.Context) error {
	ln, err := net.Listen("tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.log.Info("serving", "listen", ln.Addr().String(), "admin", a.admin.Addr().String())
	served := make(chan error, 1)
	go func() { served <- a.server.Serve(ln) }()
	a.state.serve(ln.Addr())
	select {
	case <-ctx.Done():
		a.lameDuck()
		return errors.Join(a.drain(), <-served)
	case err := <-served:
		a.state.stop()
		return errors.Join(fmt.Errorf("the admission listener failed: %w", err), a.drain())
	}
}

// lameDuck fails readiness and serves on, so that callers and load balancers
// leave before nothing is accepted any more.
func (a *App) lameDuck() {
	a.state.stop()
	a.server.LameDuck()
	a.log.Info("stopping", "lameDuck", a.cfg.LameDuck.String())
	<-time.After(a.cfg.LameDuck.Duration)
}

// drainMargin is what the drain may take beyond the longest admission: an answer
// has a way to go.
const drainMargin = time.Second

// drain stops accepting and waits for the requests under way, but not longer than
// any of them may take.
func (a *App) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Deadline.Max.Duration+drainMargin)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Warn("connections were still open when the drain was over; they are closed")
		return nil
	}
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	a.log.Info("drained")
	return nil
}

// release waits for calls that outlive their admissions and closes the
// connections to webhooks and to the APIs of clusters.
func (a *App) release() {
	a.dispatcher.Wait()
	a.closeWorkers()
	a.client.Close()
	a.telemetry.close() // the last push says what there is of Targets, which Close takes away
	a.registry.Close()
}

// workersMargin is how long plugins may run on whose answers nobody waits for any more.
const workersMargin = time.Second

// closeWorkers ends the goroutines that plugins run on. One that hangs does not keep the
// process from ending.
func (a *App) closeWorkers() {
	closed := make(chan struct{})
	go func() {
		a.workers.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(workersMargin):
		a.log.Warn("plugins still run at the end of the process")
	}
}

// Reload looks at sources and certificates now.
func (a *App) Reload() {
	a.registry.Reload()
	for _, c := range a.certificates {
		c.reload()
	}
}

// Ready is closed once admissions are accepted.
func (a *App) Ready() <-chan struct{} { return a.state.ready }

// Address returns the address of the admission listener, nil before Ready.
func (a *App) Address() net.Addr {
	address, _ := a.state.now()
	return address
}

// AdminAddress returns the address of the admin listener.
func (a *App) AdminAddress() net.Addr { return a.admin.Addr() }

// AdminURL returns where the status page is.
func (a *App) AdminURL() string { return a.admin.url() }

// state is where in its life the process is.
type state struct {
	ready chan struct{} // closed once the admission listener accepts

	mu       sync.Mutex
	address  net.Addr // of the admission listener; nil before
	stopping bool
}

func newState() *state { return &state{ready: make(chan struct{})} }

func (s *state) serve(at net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = at
	close(s.ready)
}

func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

func (s *state) now() (address net.Addr, stopping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address, s.stopping
}
