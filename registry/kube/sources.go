// SPDX-License-Identifier: Apache-2.0

// Package kube reads the namespaces of clusters from their APIs: one watch for
// each cluster that has a kubeconfigFile, and a live GET for what the watch has
// not brought (docs/decisions/0007-namespace-source.md).
package kube

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Config is the configuration of Sources.
type Config struct {
	// Wanted returns the sources in use, as the Snapshots name them; those that
	// Sources.Namespaces did not return are ignored. Required.
	Wanted func() []match.Namespaces
	// Interval is the time between two looks at what is wanted and how fresh it
	// is; 1 s.
	Interval time.Duration
	Logger   *slog.Logger // default: none
}

const (
	defaultInterval = time.Second
	// maxLists bounds how many clusters are listed at once. Lists are short; what
	// follows are watches, which cost nothing while nothing changes.
	maxLists = 32
)

// Sources is the table of the clusters' sources. It is safe for concurrent use.
type Sources struct {
	cfg   Config
	lists chan struct{} // a place for each list under way
	kick  chan struct{}

	mu      sync.Mutex
	running map[key]*running
}

// key is the full identity of a Source: one that keeps it survives a rotation.
type key struct {
	cluster string
	access  registry.KubeAccess
}

// running is a Source with its end.
type running struct {
	source *Source
	stop   context.CancelFunc
	done   chan struct{}
}

// New returns Sources without any. It starts nothing.
func New(cfg Config) *Sources {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sources{
		cfg:     cfg,
		lists:   make(chan struct{}, maxLists),
		kick:    make(chan struct{}, 1),
		running: map[key]*running{},
	}
}

// Namespaces returns the source that runs for this cluster and access, or else a
// new one, which runs as soon as it is wanted. It serves registry.Settings.
func (s *Sources) Namespaces(cluster string, access registry.KubeAccess) match.Namespaces {
	k := key{cluster, access}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.running[k]; ok {
		return r.source
	}
	return newSource(k, s.lists)
}

// Run starts the sources that are wanted and stops those that no longer are,
// until ctx is done. Nothing of them is left when it returns.
func (s *Sources) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	defer s.keep(ctx, nil)
	for {
		s.keep(ctx, s.wanted())
		s.watchFreshness()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.kick:
		}
	}
}

func (s *Sources) wanted() map[key]*Source {
	wanted := map[key]*Source{}
	for _, n := range s.cfg.Wanted() {
		if source, ok := n.(*Source); ok {
			wanted[source.key] = source
		}
	}
	return wanted
}

// keep makes what runs what is wanted, and waits for the end of what stops.
func (s *Sources) keep(ctx context.Context, wanted map[key]*Source) {
	var leaving []*running
	s.mu.Lock()
	for k, r := range s.running {
		if wanted[k] != r.source {
			r.stop()
			leaving = append(leaving, r)
			delete(s.running, k)
		}
	}
	for k, source := range wanted {
		if s.running[k] == nil && ctx.Err() == nil {
			s.running[k] = start(ctx, source)
		}
	}
	s.mu.Unlock()
	for _, r := range leaving {
		<-r.done
	}
}

func start(ctx context.Context, source *Source) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{source: source, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		source.run(ctx)
	}()
	return r
}

// watchFreshness logs who turned stale and who recovered.
func (s *Sources) watchFreshness() {
	now := time.Now()
	for _, source := range s.sources() {
		stale, changed := source.health.review(now)
		if !changed {
			continue
		}
		status := source.status(now)
		if stale {
			s.cfg.Logger.Warn("the namespaces of a cluster are stale: each is asked for", "cluster", status.Cluster,
				"synced", status.Synced, "current", status.Current, "error", status.LastError)
			continue
		}
		s.cfg.Logger.Info("the namespaces of a cluster are watched again", "cluster", status.Cluster, "namespaces", status.Namespaces)
	}
}

// Prepare starts what is wanted by now, and waits until each of the new ones has
// been listed, or could not be, or ctx is done. Run must be running.
func (s *Sources) Prepare(ctx context.Context) {
	select {
	case s.kick <- struct{}{}:
	default: // one is waiting already
	}
	for _, source := range s.wanted() {
		select {
		case <-source.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Status returns how each running source is, sorted by cluster.
func (s *Sources) Status() []Status {
	now := time.Now()
	var all []Status
	for _, source := range s.sources() {
		all = append(all, source.status(now))
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

func (s *Sources) sources() []*Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	sources := make([]*Source, 0, len(s.running))
	for _, r := range s.running {
		sources = append(sources, r.source)
	}
	return sources
}
