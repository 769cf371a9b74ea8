// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
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
