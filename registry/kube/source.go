// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Source is the namespaces of one cluster. It may be asked before it runs and
// after it has stopped: then it asks the cluster.
type Source struct {
	key    key
	client *http.Client
	api    metadata.Getter // of namespaces
	broken error           // why there is no client
	lists  chan struct{}   // places, for all clusters

	store  store
	live   *lookups
	health health

	tried   chan struct{} // closed once it was listed, or could not be
	tryOnce sync.Once
}

func newSource(k key, lists chan struct{}) *Source {
	s := &Source{key: k, lists: lists, tried: make(chan struct{})}
	s.client, s.api, s.broken = newClient(k.access)
	s.live = newLookups(s.get)
	return s
}

// NamespaceLabels implements match.Namespaces: from the watch while it is fresh,
// and for what it has not brought by a live GET.
func (s *Source) NamespaceLabels(name string, deadline time.Time) (labels map[string]string, err error) {
	n, err := s.Namespace(name, deadline)
	return n.Labels, err
}

// Namespace returns what is known of a namespace, bounded as match.Namespaces
// says, with its errors. The maps are read only.
func (s *Source) Namespace(name string, deadline time.Time) (Namespace, error) {
	if s.health.fresh(time.Now()) {
		if n, ok := s.store.namespace(name); ok {
			return n, nil
		}
	}
	return s.live.namespace(name, deadline)
}

// get asks the cluster for one namespace.
func (s *Source) get(ctx context.Context, name string) (Namespace, error) {
	if s.broken != nil {
		return Namespace{}, s.broken
	}
	object, err := s.api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Namespace{}, err
	}
	return namespaceOf(object), nil
}

// run watches until ctx is done.
func (s *Source) run(ctx context.Context) {
	if s.broken != nil {
		s.failed(s.broken)
		return
	}
	defer s.client.CloseIdleConnections()
	var silent klog.Logger // what matters is in Status and in our own log
	ctx = klog.NewContext(ctx, silent)
	r := cache.NewReflectorWithOptions(listWatch{s}, &metav1.PartialObjectMetadata{}, &s.store,
		cache.ReflectorOptions{Name: "namespaces of " + s.key.cluster, Logger: &silent})
	r.RunWithContext(ctx)
}

// attempted ends the wait for the first list.
func (s *Source) attempted() { s.tryOnce.Do(func() { close(s.tried) }) }

// failed records why a list or a watch did not begin.
func (s *Source) failed(err error) {
	s.health.failed(err)
	s.attempted()
}

func (s *Source) status(now time.Time) Status {
	status := Status{Cluster: s.key.cluster, Namespaces: s.store.len(), LiveGets: s.live.gets.Load()}
	s.health.into(&status, now)
	return status
}
