// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/telemetry"
)

// observers are told of every admission.
func (a *App) observers() []dispatcher.Observer {
	list := []dispatcher.Observer{a.metrics, a.status}
	if a.decisions != nil {
		list = append(list, a.decisions)
	}
	return list
}

// wireTelemetry makes what watches the others.
func (a *App) wireTelemetry(o Options) (err error) {
	if a.metrics, err = telemetry.NewMetrics(); err != nil {
		return err
	}
	tracing := telemetry.TracingConfig{
		Environment: os.Getenv,
		UserNames:   a.cfg.Telemetry.UserNames,
		Version:     o.Version,
		Logger:      a.log,
	}
	if o.Spans != nil {
		tracing.Exporter, tracing.Delay = o.Spans, 50*time.Millisecond
	}
	if a.tracing, err = telemetry.NewTracing(tracing); err != nil {
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
	file, err := telemetry.OpenFile(cfg.File, int64(cfg.MaxBytes), cfg.MaxFiles)
	if err != nil {
		return err
	}
	a.decisions = telemetry.NewDecisionLog(telemetry.DecisionLogConfig{
		Out:     file,
		Allows:  cfg.Allows,
		Objects: cfg.Objects,
		Mask:    cfg.Mask,
	})
	return nil
}
