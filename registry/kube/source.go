// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Source is the namespaces of one cluster, with the labels that selectors name,
// and the cluster's version. It may be asked before it is open and after it was
// closed: then it asks the cluster. It is a chain.Resource.
type Source struct {
	*watcher
	keys    map[string]string // the labels that are kept, each to itself
	store   store
	live    *lookups[string, map[string]string]
	version version
}

// namespacesPath is where an API has namespaces.
const namespacesPath = "api/v1/namespaces"

// The representations that are asked for: metadata alone, where the server has it.
const (
	acceptList   = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	acceptObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptAny    = "application/json"
)

func newSource(of *Sources, number int, cluster string, access manifest.KubeAccess, labels []string) *Source {
	s := &Source{keys: map[string]string{}}
	for _, key := range labels {
		s.keys[key] = key
	}
	reading := func(d *document) namespaceReader { return namespaceReader{d, s.keys} }
	s.watcher = newWatcher(of, number, cluster, access, resource{
		name: "namespaces", path: []string{namespacesPath}, list: acceptList, watch: acceptObject,
		room:    room{read: maxList, limit: maxList, objects: maxNamespaces},
		example: &metav1.PartialObjectMetadata{}, store: &s.store,
		page:   func(d *document, room *room) (listing, error) { return reading(d).list(room) },
		events: func(d *document) func() (event, error) { return reading(d).next },
	})
	s.owner, s.beside = s, func(ctx context.Context) { s.version.follow(ctx, s.client.version) }
	s.live = newLookups(s.name, s.get)
	return s
}

// Identity implements chain.Resource.
func (s *Source) Identity() string { return fmt.Sprint("namespaces ", s.number) }

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
	// A name that none can have would be another path of the API: it is not asked for.
	if len(validation.IsDNS1123Label(name)) > 0 {
		return nil, match.ErrNoNamespace
	}
	if labels, ok := s.live.known(name); ok {
		return labels, nil
	}
	return nil, match.ErrNotLookedUp
}

// LookUpNamespace implements match.NamespaceLookup: what is not known is one live GET.
func (s *Source) LookUpNamespace(name string, deadline time.Time) (labels map[string]string, err error) {
	if labels, err := s.NamespaceLabels(name); !errors.Is(err, match.ErrNotLookedUp) {
		return labels, err
	}
	return s.live.ask(name, deadline)
}

// KubernetesVersion implements chain.KubernetesVersioner.
func (s *Source) KubernetesVersion() chain.KubernetesVersion { return s.version.lowest() }

// get asks the cluster for the labels of one namespace.
func (s *Source) get(ctx context.Context, name string) (labels map[string]string, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	body, err := s.client.get(ctx, acceptObject, nil, namespacesPath, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = told{match.ErrNoNamespace}
		}
		return nil, err
	}
	defer func() { _ = body.Close() }()
	o, err := namespaceReader{newDocument(&budget{body, maxObject, maxObject}), s.keys}.namespace()
	if err == nil && o.Name != name {
		err = errNoJSON // what has no labels to us may be anything
	}
	if err != nil {
		return nil, failureOf(err)
	}
	return o.Labels, nil
}

// status implements opened.
func (s *Source) status(now time.Time) Status {
	status := Status{Cluster: s.cluster, Namespaces: s.store.len(), LiveGets: s.live.gets.Load()}
	s.health.into(&status, now)
	return status
}
