// SPDX-License-Identifier: Apache-2.0

// Package kube reads the namespaces of clusters from their APIs, and the objects that
// their Hooks ask for: one watch of each resource of each cluster that has a
// kubeconfigFile, and a live GET for what the watch has not brought
// (docs/decisions/0007-namespace-source.md, docs/decisions/0026-objects-of-a-cluster.md).
package kube

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Config is the configuration of Sources.
type Config struct {
	// Interval is the time between two looks at how fresh the sources are; 1 s.
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

	mu    sync.Mutex
	made  int
	open  map[string][]opened // by cluster
	kinds kinds
	// clients are those that somebody has.
	clients map[clientOf]weak.Pointer[client]

	looked time.Time // at the credentials; of Run alone
}

// opened is a chain.Resource of this package that is open.
type opened interface {
	chain.Resource
	watched() *watcher
	status(now time.Time) Status
}

// clientOf is who asks which API.
type clientOf struct {
	cluster string
	access  manifest.KubeAccess
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
		open:    map[string][]opened{},
		kinds:   kinds{looks: make(chan struct{}, maxLooks)},
		clients: map[clientOf]weak.Pointer[client]{},
	}
}

// Namespaces returns the source that is open for this cluster and access and keeps
// these labels, or else a new one, which the registry opens. So a label that is new is
// listed by a source of its own, while the one before goes on. It serves
// compile.Options.
func (s *Sources) Namespaces(cluster string, access manifest.KubeAccess, labels []string) chain.NamespaceSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open[cluster] {
		if source, ok := o.(*Source); ok && source.access == access && source.keeps(labels) {
			return source
		}
	}
	s.made++
	return newSource(s, s.made, cluster, access, labels)
}

// Objects returns the source that is open for this cluster, access and resource, or else
// a new one, which the registry opens. It serves compile.Options.
func (s *Sources) Objects(cluster string, access manifest.KubeAccess, resource schema.GroupVersionResource) chain.ObjectSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open[cluster] {
		if source, ok := o.(*Objects); ok && source.access == access && source.gvr == resource {
			return source
		}
	}
	s.made++
	return newObjects(s, s.made, cluster, access, resource)
}

// client returns the client that is used for this access to the cluster, or a new one.
// It is there for as long as somebody has it. The Sources are locked.
func (s *Sources) client(cluster string, access manifest.KubeAccess) (*client, error) {
	maps.DeleteFunc(s.clients, func(_ clientOf, c weak.Pointer[client]) bool { return c.Value() == nil })
	of := clientOf{cluster, access}
	if known := s.clients[of].Value(); known != nil {
		return known, nil
	}
	c, err := newClient(access, s.cfg.Allowed)
	if err == nil {
		s.clients[of] = weak.Make(c)
	}
	return c, err
}

// opened and closed keep the list of what is open.
func (s *Sources) opened(o opened) {
	cluster := o.watched().cluster
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[cluster] = append(s.open[cluster], o)
}

func (s *Sources) closed(o opened) {
	cluster := o.watched().cluster
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.open[cluster], func(other opened) bool { return other == o })
	if s.open[cluster] = left; len(left) == 0 {
		delete(s.open, cluster)
	}
}

// Run looks at how fresh the open sources and their credentials are, until ctx is
// done.
func (s *Sources) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	for {
		s.watchFreshness()
		s.watchCredentials()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// watchFreshness logs who turned stale and who recovered.
func (s *Sources) watchFreshness() {
	now := time.Now()
	for _, source := range s.sources() {
		stale, changed := source.watched().health.review(now)
		if !changed {
			continue
		}
		status := source.status(now)
		what := "the namespaces of a cluster"
		log := s.cfg.Logger.With("cluster", status.Cluster)
		if status.Resource != "" {
			what, log = "objects of a cluster", log.With("resource", status.Resource)
		}
		if stale {
			log.Warn(what+" are stale: each is asked for", "synced", status.Synced, "current", status.Current, "error", status.LastError)
			continue
		}
		log.Info(what+" are watched again", "namespaces", status.Namespaces, "objects", status.Objects)
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
	for _, o := range s.sources() {
		source, ok := o.(*Source) // each cluster has one, with the credential of all others
		if !ok {
			continue
		}
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

// Status returns how the namespaces of each cluster are, sorted by cluster. While
// one source follows another it is the better one that counts.
func (s *Sources) Status() []Status {
	return s.statuses(func(o opened) bool { _, ok := o.(*Source); return ok })
}

// ObjectsStatus returns how the objects of each cluster and resource are, sorted by
// both, as Status does.
func (s *Sources) ObjectsStatus() []Status {
	return s.statuses(func(o opened) bool { _, ok := o.(*Objects); return ok })
}

func (s *Sources) statuses(of func(opened) bool) []Status {
	now := time.Now()
	var all []Status
	for _, o := range s.sources() {
		if of(o) {
			all = append(all, o.status(now))
		}
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Resource, b.Resource), cmp.Compare(rank(a), rank(b)))
	})
	return slices.CompactFunc(all, func(a, b Status) bool { return a.Cluster == b.Cluster && a.Resource == b.Resource })
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

func (s *Sources) sources() []opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []opened
	for _, list := range s.open {
		all = append(all, list...)
	}
	return all
}
