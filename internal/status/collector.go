// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Registry is what a Collector asks of the registry; *registry.Registry does.
type Registry interface {
	Snapshot() *registry.Snapshot
	Problems() []manifest.Problem
	Targets() []*transport.Target
	Draining() []*transport.Target
}

// Config is the configuration of a Collector. Everything but Namespaces, Objects,
// Authorizers, Certificates and Mirror is required; all functions are called by several
// goroutines.
type Config struct {
	Version      string
	Registry     Registry
	Unready      func() []string // why the process should get no traffic
	Namespaces   func() []kube.Status
	Authorizers  func() []kube.AuthorizerStatus
	Objects      func() []kube.Status
	Certificates func() []Certificate
	Mirror       func() *mirrorstatus.Mirror // nil: there is none
}

// Collector puts the Status together. It observes admissions and changes of the
// configuration, and is safe for concurrent use.
type Collector struct {
	cfg     Config
	started time.Time

	recent    recent
	tallies   tallies
	history   history
	latencies latencies
	shadows   shadows
}

// New returns a Collector of a process that starts now.
func New(cfg Config) *Collector {
	if cfg.Namespaces == nil {
		cfg.Namespaces = func() []kube.Status { return nil }
	}
	if cfg.Authorizers == nil {
		cfg.Authorizers = func() []kube.AuthorizerStatus { return nil }
	}
	if cfg.Objects == nil {
		cfg.Objects = func() []kube.Status { return nil }
	}
	if cfg.Certificates == nil {
		cfg.Certificates = func() []Certificate { return nil }
	}
	if cfg.Mirror == nil {
		cfg.Mirror = func() *mirrorstatus.Mirror { return nil }
	}
	return &Collector{cfg: cfg, started: time.Now().UTC(), recent: newRecent(), history: newHistory()}
}

// Changed records a change of the configuration. It serves registry.Settings.
func (c *Collector) Changed(change registry.Change) { c.history.add(time.Now(), change) }

// Run samples latencies until ctx is done.
func (c *Collector) Run(ctx context.Context) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			c.latencies.sample(now, c.cfg.Registry.Targets())
			c.forget()
		}
	}
}

// forget drops the counts of clusters and webhooks that are no longer served.
func (c *Collector) forget() {
	s := c.cfg.Registry.Snapshot()
	if s == nil {
		return
	}
	c.shadows.keep(registeredIn(s))
	c.tallies.keep(func(cluster string) bool { return s.Clusters[cluster] != nil })
}

// Status returns the process as of now.
func (c *Collector) Status() Status {
	unready := c.cfg.Unready()
	s := Status{
		Version:      c.cfg.Version,
		Started:      c.started,
		Now:          time.Now().UTC(),
		Ready:        len(unready) == 0,
		Unready:      orEmpty(unready),
		Problems:     orEmpty(c.cfg.Registry.Problems()),
		Warnings:     []manifest.Problem{},
		Pending:      []Pending{},
		Draining:     []Draining{},
		Clusters:     []Cluster{},
		Chains:       []Chain{},
		Webhooks:     []Webhook{},
		Targets:      []Target{},
		Certificates: orEmpty(c.cfg.Certificates()),
		Mirror:       c.cfg.Mirror(),
	}
	for _, t := range c.cfg.Registry.Draining() {
		s.Draining = append(s.Draining, Draining{URL: t.URL(), Outstanding: t.Outstanding()})
	}
	if served := c.cfg.Registry.Snapshot(); served != nil {
		c.serve(&s, served)
	}
	c.recent.into(&s)
	c.history.into(&s)
	s.Notices = s.FindNotices()
	return s
}

// serve fills in what is served.
func (c *Collector) serve(s *Status, served *registry.Snapshot) {
	s.Snapshot = &Snapshot{Hash: served.Hash, Short: served.ShortHash(), Since: c.started}
	s.Warnings = orEmpty(served.Warnings)
	for _, p := range served.Pending {
		s.Pending = append(s.Pending, Pending{Webhook: p.Webhook, URL: p.URL, Previous: p.Previous, Reason: p.Err.Error()})
	}
	all := catalogOf(served)
	namespaces := map[string]*Namespaces{}
	for _, n := range c.cfg.Namespaces() {
		namespaces[n.Cluster] = newNamespaces(n)
	}
	authorizers := map[string]*Authorizer{}
	for _, a := range c.cfg.Authorizers() {
		authorizers[a.Cluster] = &Authorizer{Answered: a.Answered, Cached: a.Cached, Failed: a.Failed, Shed: a.Shed, Waiting: a.Waiting, Error: a.LastError}
	}
	objects := map[string][]Objects{}
	for _, o := range c.cfg.Objects() {
		objects[o.Cluster] = append(objects[o.Cluster], newObjects(o))
	}
	for _, name := range sortedKeys(served.Clusters) {
		cluster := served.Clusters[name]
		s.Clusters = append(s.Clusters, Cluster{
			Name:           name,
			Labels:         labelsOf(cluster),
			Anonymous:      cluster.Anonymous,
			TimeoutSeconds: cluster.Timeout.Seconds(),
			Chain:          all.place(cluster),
			Counts:         c.tallies.counts(name),
			Namespaces:     namespaces[name],
			Authorizer:     authorizers[name],
			Objects:        orEmpty(objects[name]),

			KubernetesVersion: cluster.KubernetesVersion().String(),
		})
	}
	for _, t := range served.Targets {
		s.Targets = append(s.Targets, c.target(t))
	}
	s.Chains, s.Webhooks = all.chains, all.webhooks
	c.shadows.into(s.Webhooks)
	slices.SortStableFunc(s.Webhooks, func(a, b Webhook) int { return cmp.Compare(a.ID, b.ID) })
}

// labelsOf returns the labels, which are {} in JSON where there are none.
func labelsOf(c *chain.Cluster) map[string]string {
	if c.Labels == nil {
		return map[string]string{}
	}
	return c.Labels
}

func newNamespaces(n kube.Status) *Namespaces {
	return &Namespaces{
		Cached: n.Namespaces, Synced: n.Synced, Stale: n.Stale, Current: n.Current.UTC(), LiveGets: n.LiveGets,
		Error: n.LastError, Credential: n.Credential,
	}
}

func newObjects(o kube.Status) Objects {
	return Objects{
		Resource: o.Resource, Cached: o.Objects - o.Unkept, Bytes: o.Bytes, Unkept: o.Unkept, Partial: o.Lost,
		Synced: o.Synced, Stale: o.Stale, Current: o.Current.UTC(), LiveGets: o.LiveGets, Error: o.LastError,
	}
}

// orEmpty makes a list [] in JSON where it would be null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
