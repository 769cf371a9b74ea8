// SPDX-License-Identifier: Apache-2.0

// Package controller says of the objects of a registry in a Kubernetes API what became of
// them, in their conditions, and looks after the registrations of clusters.
//
// One replica is enough, and two do no harm: what is written is a function of what is
// seen, and nothing is written that is there already. While none runs, nothing but the
// conditions is late.
package controller

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
	"github.com/admission-dispatcher/dispatcher/registration"
)

// The defaults of Settings.
const (
	DefaultPoll     = 5 * time.Second
	DefaultInterval = time.Minute
	DefaultEvery    = 50 * time.Millisecond
)

// Settings are what a Controller needs to know.
type Settings struct {
	// Mirror is how the API is followed: its Client, Namespace, Directory (scratch space)
	// and how objects are judged.
	Mirror   mirror.Settings
	Replicas Replicas
	// Registration returns how a cluster reaches the dispatcher. The error is that the
	// configuration does not say it.
	Registration func(cluster string) (registration.Options, error)
	// Allowed judges the addresses of clusters' APIs. nil: any.
	Allowed func(netip.AddrPort) error
	// DryRun keeps registrations from being applied where a Cluster lets them: it is
	// logged what would be.
	DryRun bool
	// Poll is how often replicas are asked, Interval how often the registration of a
	// cluster is looked at, and Every the time between two writes of status.
	Poll, Interval, Every time.Duration
	Logger                *slog.Logger
}

// Controller writes conditions and looks after registrations.
type Controller struct {
	settings      Settings
	follower      *mirror.Follower
	registrations *registrations
	writer        *writer
	news          chan struct{}

	mu       sync.Mutex
	decision *mirror.Decision // the latest; nil: none yet
	settled  *mirror.Decision // the latest that all ready replicas served; nil: none yet
	fleet    fleet
	versions map[string]map[string]string
	order    []string // of versions, the oldest first
}

// maxVersions is how many generations are remembered.
const maxVersions = 64

// New returns a Controller. It does nothing yet.
func New(s Settings) *Controller {
	s.Poll, s.Interval, s.Every = cmp.Or(s.Poll, DefaultPoll), cmp.Or(s.Interval, DefaultInterval), cmp.Or(s.Every, DefaultEvery)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Controller{settings: s, news: make(chan struct{}, 1), versions: map[string]map[string]string{}}
	c.follower = mirror.NewFollower(s.Mirror, c.decided)
	c.registrations = newRegistrations(s.Interval, c.noteworthy, s.Logger)
	c.writer = newWriter(s.Mirror.Client, s.Every, s.Logger)
	return c
}

func (c *Controller) noteworthy() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// Run works until ctx is done. The error is that its directory cannot be used.
func (c *Controller) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.registrations.running.Wait()
	defer stop()
	running.Go(func() { c.writer.run(ctx) })
	running.Go(func() { c.watchFleet(ctx) })
	running.Go(func() { c.work(ctx) })
	return c.follower.Run(ctx)
}

// decided takes what the follower has decided.
func (c *Controller) decided(d *mirror.Decision) {
	versions := make(map[string]string, len(d.Objects))
	for i := range d.Objects {
		versions[d.Objects[i].Key] = d.Objects[i].Served
	}
	c.mu.Lock()
	c.decision = d
	if c.versions[d.Generation] == nil {
		c.order = append(c.order, d.Generation)
	}
	c.versions[d.Generation] = versions
	for len(c.order) > maxVersions {
		delete(c.versions, c.order[0])
		c.order = c.order[1:]
	}
	unsettled := c.settled == nil
	c.mu.Unlock()
	c.settle()
	if unsettled {
		c.registrations.change()
	}
	c.noteworthy()
}

// watchFleet asks the replicas from time to time.
func (c *Controller) watchFleet(ctx context.Context) {
	if !c.settings.Replicas.isKnown() {
		return
	}
	for {
		f := c.settings.Replicas.ask(ctx, c.settings.Mirror.Client)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.fleet = f
		c.mu.Unlock()
		c.settle()
		c.noteworthy()
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.settings.Poll):
		}
	}
}

// settle notes that all ready replicas serve what was decided last. Registrations are
// compared with that: a generation that is held back, or that some replicas do not serve
// yet, is not what clusters should call for.
func (c *Controller) settle() {
	c.mu.Lock()
	changed := c.decision != nil && c.decision != c.settled && c.fleet.serving(c.decision.Generation)
	if changed {
		c.settled = c.decision
	}
	c.mu.Unlock()
	if changed {
		c.registrations.change()
	}
}

// planEvery is the time between two looks at all objects.
const planEvery = time.Second

// work writes what has changed, and looks at the clusters that are due.
func (c *Controller) work(ctx context.Context) {
	const tick = 250 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var planned, created time.Time
	news := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.news:
			news = true
			continue
		case <-ticker.C:
		}
		v := c.view()
		if v == nil {
			continue
		}
		c.registrations.due(ctx, time.Now(), c.looks())
		// Also without news: what failed is tried again, and what others wrote is seen.
		if since := time.Since(planned); news && since >= min(planEvery, c.settings.Poll) || since >= c.settings.Poll {
			news, planned = false, time.Now()
			c.writer.want(v.plan(c.follower.Status, planned))
			_, _, there := c.follower.Status(registryKind + "/" + v1alpha1.RegistryName)
			if !there && time.Since(created) >= c.settings.Interval {
				created = time.Now()
				c.writer.createRegistry(ctx)
			}
		}
	}
}

// view returns what is seen now; nil: nothing yet.
func (c *Controller) view() *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decision == nil {
		return nil
	}
	v := &view{decision: c.decision, versions: make(map[string]map[string]string, len(c.versions)), asks: c.settings.Replicas.isKnown(), fleet: c.fleet}
	for name, versions := range c.versions {
		v.versions[name] = versions // each is never changed
	}
	v.verdicts = c.registrations.verdicts()
	return v
}

// looks returns what is to be looked at, by the name of the cluster.
func (c *Controller) looks() map[string]func() *look {
	c.mu.Lock()
	d, settled := c.settled, c.settled != nil
	if !settled {
		d = c.decision
	}
	current := c.decision
	c.mu.Unlock()
	all := make(map[string]func() *look, len(d.Clusters))
	for name, cluster := range d.Clusters {
		if current.Clusters[name] == nil || current.Clusters[name].Registration == v1alpha1.RegistrationOff {
			continue
		}
		apply := settled && d == current && current.Clusters[name].Registration == v1alpha1.RegistrationApply
		kubeconfig := current.Kubeconfigs[name]
		all[name] = func() *look {
			l := &look{cluster: cluster, kubeconfig: kubeconfig, allowed: c.settings.Allowed, apply: apply && !c.settings.DryRun, dryRun: apply && c.settings.DryRun}
			l.options, l.unset = c.settings.Registration(name)
			return l
		}
	}
	return all
}
