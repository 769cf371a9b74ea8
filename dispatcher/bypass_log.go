// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// bypassInterval is the time between two log lines about one rule in one cluster:
// leases alone are renewed many times a second.
const bypassInterval = time.Minute

// bypassLog says that a bypass is in use without a line for each request.
type bypassLog struct {
	mu   sync.Mutex
	seen map[bypassKey]*bypassCount
}

type bypassKey struct{ cluster, rule string }

type bypassCount struct {
	said  time.Time
	since int // requests since then
}

// count notes one more bypass and returns how many there were since the last
// line, if it is time for another.
func (l *bypassLog) count(key bypassKey, now time.Time) (requests int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[bypassKey]*bypassCount{}
	}
	c := l.seen[key]
	if c == nil {
		c = &bypassCount{}
		l.seen[key] = c
	}
	c.since++
	if now.Sub(c.said) < bypassInterval {
		return 0, false
	}
	requests = c.since
	c.said, c.since = now, 0
	return requests, true
}

// recordBypass logs a bypass, with the request that it let pass, at most once per
// interval for a rule in a cluster.
func (d *Dispatcher) recordBypass(ctx context.Context, req Request, rule string) {
	requests, due := d.bypasses.count(bypassKey{req.Cluster.Name, rule}, time.Now())
	if !due {
		return
	}
	attrs := append(admissionAttrs(req), slog.String("rule", rule), slog.Int("requests", requests))
	d.log.LogAttrs(ctx, slog.LevelInfo, "admissions bypassed", attrs...)
}
