// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// How many clusters are looked at at once: of those that answered the last time, or have
// not been asked yet, and of those that did not. So clusters that hang hold up none that
// answers.
const (
	maxLooks     = 32
	maxDoubtful  = 4
	maxBackoff   = 10 * time.Minute
	maxReverts   = 3
	revertWindow = 30 * time.Minute
)

// registrations looks at the registrations of clusters, each on its own.
type registrations struct {
	interval time.Duration
	news     func() // is called when there is a verdict that says something else
	log      *slog.Logger

	mu       sync.Mutex
	clusters map[string]*watched
	running  sync.WaitGroup
	looking  int
	doubtful int
	random   func(time.Duration) time.Duration
}

// watched is a cluster that is looked at.
type watched struct {
	next    time.Time
	wait    time.Duration // after a failure
	busy    bool
	stale   bool // what is wanted has changed while it was looked at
	verdict *verdict
	applied []time.Time // within revertWindow
}

func newRegistrations(interval time.Duration, news func(), log *slog.Logger) *registrations {
	return &registrations{interval: interval, news: news, log: log, clusters: map[string]*watched{}, random: jitter}
}

// jitter spreads what is done every d: up to a tenth less.
func jitter(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - rand.N(d/10)
}

// verdicts returns what there is to say now, by the cluster's name.
func (r *registrations) verdicts() map[string]verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]verdict, len(r.clusters))
	for name, w := range r.clusters {
		if w.verdict != nil {
			all[name] = *w.verdict
		}
	}
	return all
}

// change makes every cluster due whose last look succeeded, because what is wanted of
// them may have changed. Of those that do not answer, none is asked earlier.
func (r *registrations) change() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.clusters {
		w.stale = true
		if w.wait == 0 {
			w.next = time.Time{}
		}
	}
}

// due starts a look at each cluster that is due and for which there is room, and forgets
// those that are not wanted any more. looks are what is looked for, by the cluster's name.
func (r *registrations) due(ctx context.Context, now time.Time, looks map[string]func() *look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.clusters, func(name string, w *watched) bool { return looks[name] == nil && !w.busy })
	names := slices.Collect(maps.Keys(looks))
	for _, name := range names {
		if r.clusters[name] == nil {
			r.clusters[name] = &watched{}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return r.clusters[a].next.Compare(r.clusters[b].next) })
	for _, name := range names {
		w := r.clusters[name]
		room, most := &r.looking, maxLooks
		if w.wait > 0 {
			room, most = &r.doubtful, maxDoubtful
		}
		if w.busy || now.Before(w.next) || *room >= most {
			continue
		}
		*room++
		w.busy, w.stale = true, false
		l := looks[name]()
		if len(w.applied) >= maxReverts && now.Sub(w.applied[0]) < revertWindow {
			l.apply = false // somebody else changes it back: two who fight reach nothing
		}
		r.running.Go(func() { r.look(ctx, w, l, room) })
	}
}

func (r *registrations) look(ctx context.Context, w *watched, l *look, room *int) {
	v := l.takeSafely(ctx)
	r.mu.Lock()
	now := time.Now()
	*room--
	w.busy = false
	if v.applied {
		w.applied = append(w.applied, now)
	}
	w.applied = slices.DeleteFunc(w.applied, func(at time.Time) bool { return now.Sub(at) >= revertWindow })
	if len(w.applied) >= maxReverts && v.reason == reasonStale {
		v.reason = reasonReverted
		v.message += ". It was applied and changed back: find out by whom (kubectl get --show-managed-fields)"
	}
	switch {
	case v.failed:
		w.wait = min(max(2*w.wait, r.interval), max(maxBackoff, r.interval))
		w.next = now.Add(r.random(w.wait))
	case w.stale:
		w.wait, w.next = 0, time.Time{}
	default:
		w.wait, w.next = 0, now.Add(r.random(r.interval))
	}
	r.tell(l, w.verdict, &v)
	news := w.verdict == nil || w.verdict.status != v.status || w.verdict.reason != v.reason || w.verdict.message != v.message
	w.verdict = &v
	r.mu.Unlock()
	if news {
		r.news()
	}
}

// maxTold bounds the differences in a line of the log.
const maxTold = 100

// tell logs what was applied, and what a dry run would have applied, once for each change.
func (r *registrations) tell(l *look, before, v *verdict) {
	if v.applied {
		r.log.Info("registration was applied", "cluster", l.cluster.Name, "now", v.reason)
	}
	if len(v.diff) > 0 && (before == nil || !slices.Equal(before.diff, v.diff)) {
		r.log.Info("registration would be applied", "cluster", l.cluster.Name, "diff", v.diff[:min(len(v.diff), maxTold)])
	}
}

// takeSafely makes a panic a verdict: one cluster must not end the others' looks.
func (l *look) takeSafely(ctx context.Context) (v verdict) {
	defer func() {
		if recover() != nil {
			v = unknown(reasonImpossible, "the comparison has failed: this is a defect of the controller")
		}
	}()
	return l.take(ctx)
}
