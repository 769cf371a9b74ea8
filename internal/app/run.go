// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/admin"
)

// drainMargin is what the drain may take beyond the longest admission.
const drainMargin = time.Second

// Run serves until ctx is done, then lets go of its callers without losing a
// call, and returns when nothing of the process runs any more. Reload may be
// called meanwhile.
func (a *App) Run(ctx context.Context) error {
	// The loops outlive ctx: a lame duck still follows its configuration.
	loops, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer a.dispatcher.Wait()
	defer stopLoops()

	probes := admin.New(a.state.reasons)
	running.Go(func() { _ = probes.Serve(a.admin) })
	defer func() { _ = probes.Close() }()

	a.registry.Load()
	running.Go(func() { a.registry.Run(loops) })
	running.Go(func() { a.certificates.run(loops, a.cfg.ReloadInterval.Duration) })
	if !a.awaitSnapshot(ctx) {
		return nil
	}
	running.Go(func() { a.resolver.Run(loops) })
	return a.serve(ctx)
}

// awaitSnapshot returns when there is a configuration to serve, or false when
// ctx is done first. Without one nothing is accepted: a caller that cannot
// connect knows what to do, one that is answered without policies does not.
func (a *App) awaitSnapshot(ctx context.Context) bool {
	ticker := time.NewTicker(min(a.cfg.ReloadInterval.Duration, 100*time.Millisecond))
	defer ticker.Stop()
	for a.registry.Snapshot() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// serve opens the admission listener, and closes it gently when ctx is done.
func (a *App) serve(ctx context.Context) error {
	ln, err := net.Listen("tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.log.Info("serving", "listen", ln.Addr().String(), "admin", a.admin.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- a.server.Serve(ln) }()
	a.state.serving(ln.Addr())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return errors.Join(a.stop(), <-failed)
}

// stop is DESIGN's lame duck: not ready any more, but serving, each answer
// closing its connection; then no new connections, and time for what is under
// way.
func (a *App) stop() error {
	a.state.stopping()
	a.server.LameDuck()
	a.log.Info("stopping", "lameDuck", a.cfg.LameDuck.Duration.String())
	<-time.After(a.cfg.LameDuck.Duration)
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Deadline.Max.Duration+drainMargin)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("drain: %w", err)
	}
	a.log.Info("drained")
	return nil
}

// prepare looks up the addresses of webhooks that are new, within bounds.
func (a *App) prepare() {
	ctx, cancel := context.WithTimeout(context.Background(), firstLookups)
	defer cancel()
	a.resolver.Refresh(ctx)
}

// Reload looks at sources and certificates now.
func (a *App) Reload() {
	a.registry.Reload()
	a.certificates.reload()
}
