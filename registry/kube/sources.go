// SPDX-License-Identifier: Apache-2.0

// Package kube reads the namespaces of clusters from their APIs: one watch for
// each cluster that has a kubeconfigFile, and a live GET for what the watch has
// not brought (docs/decisions/0007-namespace-source.md).
package kube

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Config is the configuration of Sources.
type Config struct {
	// Wanted returns the sources in use, as the Snapshots name them; those that
	// Sources.Namespaces did not return are ignored. Required.
	Wanted func() []match.Namespaces
	// Interval is the time between two looks at what is wanted and how fresh it
	// is; 1 s.
	Interval time.Duration
	// Allowed, if not nil, returns why an address may not be dialled (E2).
	Allowed func(netip.AddrPort) error
	Logger  *slog.Logger // default: none
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
	running map[*Source]*running
	ofOne   map[string][]*Source // those that run, by cluster

	looked time.Time // at the credentials; of Run alone
}

// running is a Source with its end.
type running struct {
	stop context.CancelFunc
	done chan struct{}
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
		running: map[*Source]*running{},
		ofOne:   map[string][]*Source{},
	}
}

// Namespaces returns the source that runs for this cluster and access and keeps
// these labels, or else a new one, which runs as soon as it is wanted. So a label
// that is new is listed by a source of its own, while the one before goes on. It
// serves registry.Settings.
func (s *Sources) Namespaces(cluster string, access manifest.KubeAccess, labels []string) match.Namespaces {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, source := range s.ofOne[cluster] {
		if source.access == access && source.keeps(labels) {
			return source
		}
	}
	return newSource(cluster, access, labels, s.lists, s.cfg.Allowed)
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
		s.watchCredentials()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.kick:
		}
	}
}

func (s *Sources) wanted() map[*Source]bool {
	wanted := map[*Source]bool{}
	for _, n := range s.cfg.Wanted() {
		if source, ok := n.(*Source); ok {
			wanted[source] = true
		}
	}
	return wanted
}

// keep makes what runs what is wanted, and waits for the end of what stops.
func (s *Sources) keep(ctx context.Context, wanted map[*Source]bool) {
	var leaving []*running
	s.mu.Lock()
	for source, r := range s.running {
		if !wanted[source] {
			r.stop()
			leaving = append(leaving, r)
			delete(s.running, source)
		}
	}
	for source := range wanted {
		if s.running[source] == nil && ctx.Err() == nil {
			s.running[source] = start(ctx, source)
		}
	}
	clear(s.ofOne)
	for source := range s.running {
		s.ofOne[source.cluster] = append(s.ofOne[source.cluster], source)
	}
	s.mu.Unlock()
	for _, r := range leaving {
		<-r.done
	}
}

func start(ctx context.Context, source *Source) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{stop: stop, done: make(chan struct{})}
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

// credentialInterval is the time between two looks at the files of credentials:
// while a watch is open nothing else may read them for minutes.
const credentialInterval = 10 * time.Second

// watchCredentials logs whose credential's files are broken and whose are good
// again.
func (s *Sources) watchCredentials() {
	now := time.Now()
	if now.Sub(s.looked) < min(credentialInterval, 10*s.cfg.Interval) {
		return
	}
	s.looked = now
	for _, source := range s.sources() {
		err, news := source.lookAtCredential()
		switch {
		case !news:
		case err != nil:
			s.cfg.Logger.Warn("the credential for a cluster's API cannot be read: the last good one is used, if there was one",
				"cluster", source.cluster, "error", err.Error())
		default:
			s.cfg.Logger.Info("the credential for a cluster's API is good again", "cluster", source.cluster)
		}
	}
}

// Prepare starts what is wanted by now, and waits until each of the new ones has
// been listed, or could not be, or ctx is done. Run must be running.
func (s *Sources) Prepare(ctx context.Context) {
	select {
	case s.kick <- struct{}{}:
	default: // one is waiting already
	}
	for source := range s.wanted() {
		select {
		case <-source.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Status returns how the namespaces of each cluster are, sorted by cluster. While
// one source follows another it is the better one that counts.
func (s *Sources) Status() []Status {
	now := time.Now()
	var all []Status
	for _, source := range s.sources() {
		all = append(all, source.status(now))
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), cmp.Compare(rank(a), rank(b)))
	})
	return slices.CompactFunc(all, func(a, b Status) bool { return a.Cluster == b.Cluster })
}

// rank is lower for what is better.
func rank(s Status) int {
	switch {
	case !s.Stale:
		return 0
	case s.Synced:
		return 1
	}
	return 2
}

func (s *Sources) sources() []*Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	sources := make([]*Source, 0, len(s.running))
	for source := range s.running {
		sources = append(sources, source)
	}
	return sources
}
