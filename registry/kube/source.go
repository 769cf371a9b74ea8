// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Source is the namespaces of one cluster, with the labels that selectors name,
// and the cluster's version. It may be asked before it is open and after it was
// closed: then it asks the cluster. It is a chain.Resource.
type Source struct {
	of      *Sources
	number  int
	cluster string
	access  manifest.KubeAccess
	keys    map[string]string // the labels that are kept, each to itself
	client  *client
	broken  error // why there is no client

	store   store
	live    *lookups
	health  health
	version version

	tried   chan struct{} // closed once it was listed, or could not be
	tryOnce sync.Once
	stop    context.CancelFunc // of what goes on while it is open
	running sync.WaitGroup
}

func newSource(of *Sources, number int, cluster string, access manifest.KubeAccess, labels []string) *Source {
	s := &Source{of: of, number: number, cluster: cluster, access: access, keys: map[string]string{}, tried: make(chan struct{})}
	for _, key := range labels {
		s.keys[key] = key
	}
	s.client, s.broken = newClient(access, of.cfg.Allowed)
	s.live = newLookups(s.get)
	return s
}

// Identity implements chain.Resource.
func (s *Source) Identity() string { return fmt.Sprint("namespaces ", s.number) }

// Open begins to watch, and waits until the namespaces have been listed, or could not
// be, or ctx is done. The watch goes on until Close.
func (s *Source) Open(ctx context.Context) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.running.Go(func() { s.run(running) })
	s.of.opened(s)
	select {
	case <-s.tried:
	case <-ctx.Done():
	}
}

// Ready returns nil: nothing waits for a cluster's API. A webhook that needs a
// namespace that is not known refuses the request.
func (s *Source) Ready(*chain.DryRun) error { return nil }

// Busy returns false: who asks while it is closed asks the cluster.
func (s *Source) Busy() bool { return false }

// Close ends the watch.
func (s *Source) Close() {
	s.of.closed(s)
	s.stop()
	s.running.Wait()
}

// String names the cluster.
func (s *Source) String() string { return "namespaces of cluster " + s.cluster }

// keeps reports whether all these labels are kept.
func (s *Source) keeps(labels []string) bool {
	for _, key := range labels {
		if _, ok := s.keys[key]; !ok {
			return false
		}
	}
	return true
}

// NamespaceLabels implements match.Namespaces: what the watch has brought, while it
// is fresh, or a live GET a moment ago. Of the labels it has those that it was made
// for, and perhaps others.
func (s *Source) NamespaceLabels(name string) (labels map[string]string, err error) {
	if s.health.fresh(time.Now()) {
		if labels, ok := s.store.namespace(name); ok {
			return labels, nil
		}
	}
	return s.live.known(name)
}

// LookUpNamespace implements match.NamespaceLookup: what is not known is one live GET.
func (s *Source) LookUpNamespace(name string, deadline time.Time) (labels map[string]string, err error) {
	if labels, err := s.NamespaceLabels(name); !errors.Is(err, match.ErrNotLookedUp) {
		return labels, err
	}
	return s.live.namespace(name, deadline)
}

// KubernetesVersion implements chain.KubernetesVersioner.
func (s *Source) KubernetesVersion() chain.KubernetesVersion { return s.version.lowest() }

// get asks the cluster for the labels of one namespace.
func (s *Source) get(ctx context.Context, name string) (labels map[string]string, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	o, err := s.client.namespace(ctx, s.keys, name)
	if err != nil {
		return nil, err
	}
	return o.Labels, nil
}

// run watches until ctx is done.
func (s *Source) run(ctx context.Context) {
	if s.broken != nil {
		s.failed(s.broken)
		return
	}
	defer s.client.close()
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { s.version.follow(ctx, s.client.version) })
	var silent klog.Logger // what matters is in Status and in our own log
	r := cache.NewReflectorWithOptions(listWatch{s, &listed{}}, &metav1.PartialObjectMetadata{}, &s.store,
		cache.ReflectorOptions{Name: "namespaces of " + s.cluster, Logger: &silent})
	r.RunWithContext(klog.NewContext(ctx, silent))
}

// attempted ends the wait for the first list.
func (s *Source) attempted() { s.tryOnce.Do(func() { close(s.tried) }) }

// failed records why a list or a watch did not begin.
func (s *Source) failed(err error) {
	s.health.failed(err)
	s.attempted()
}

// lookAtCredential records whether the files of the credential are good, though
// nothing may be asked for long, and reports whether that is news.
func (s *Source) lookAtCredential() (err error, news bool) {
	if s.broken != nil {
		return s.broken, false
	}
	_, err = s.client.credentials.Current()
	return err, s.health.proves(err)
}

func (s *Source) status(now time.Time) Status {
	status := Status{Cluster: s.cluster, Namespaces: s.store.len(), LiveGets: s.live.gets.Load()}
	s.health.into(&status, now)
	return status
}
