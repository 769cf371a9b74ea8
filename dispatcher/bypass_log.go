// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// bypassInterval is the time between two log lines about one rule in one cluster:
// leases alone are renewed many times a second.
const bypassInterval = time.Minute

// bypassLog says that a bypass is in use without a line for each request.
type bypassLog struct {
	mu    sync.Mutex
	rules map[string]*throttle.PerCluster // by name, which the configuration gives
}

// count notes one more bypass and returns how many there were since the last
// line, if it is time for another.
func (l *bypassLog) count(cluster, rule string, now time.Time) (requests int, due bool) {
	before, due := l.of(rule).Pass(cluster, now)
	if !due {
		return 0, false
	}
	return before + 1, true
}

func (l *bypassLog) of(rule string) *throttle.PerCluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.rules[rule]
	if p == nil {
		p = &throttle.PerCluster{Burst: 1, Window: bypassInterval}
		if l.rules == nil {
			l.rules = map[string]*throttle.PerCluster{}
		}
		l.rules[rule] = p
	}
	return p
}

// recordBypass logs a bypass, with the request that it let pass, at most once per
// interval for a rule in a cluster.
func (d *Dispatcher) recordBypass(ctx context.Context, req Request, rule string) {
	requests, due := d.bypasses.count(req.Cluster.Name, rule, time.Now())
	if !due {
		return
	}
	attrs := append(admissionAttrs(req), slog.String("rule", rule), slog.Int("requests", requests))
	d.log.LogAttrs(ctx, slog.LevelInfo, "admissions bypassed", attrs...)
}
