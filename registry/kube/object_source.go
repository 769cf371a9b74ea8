// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const (
	// maxListed bounds what a live LIST may take, and all answers that are kept for a
	// while (item.weight); maxListBytes bounds the bytes that are read for one.
	maxListed    = 4 << 20
	maxListBytes = 16 << 20
	// maxObjectGets bounds the live GETs and LISTs of one resource that are under way.
	maxObjectGets = 8
	// absentFor is how long it counts that there is none: somebody may just be
	// creating it, and what does not exist is not asked for by each admission.
	absentFor = time.Second
)

var (
	errUnserved = errors.New("the cluster's API does not serve them")
	errTooMany  = errors.New("there are more than are read")
	errTooLarge = errors.New("it is larger than what is read")
)

// Objects are the objects of one resource of one cluster, whole but for their
// managedFields. They may be asked before they are open and after they were closed:
// then they ask the cluster. They are a chain.Resource.
type Objects struct {
	*watcher
	gvr   schema.GroupVersionResource
	store objectStore
	live  *lookups[wanted, answer]
}

// wanted is what the cluster is asked: for an object, or without a name for those of
// a namespace, or of all.
type wanted struct{ namespace, name string }

// answer is what the cluster has said; neither of both: there is none.
type answer struct {
	stored *hook.Stored
	list   []*hook.Stored
	weight int
}

func newObjects(of *Sources, number int, cluster string, access manifest.KubeAccess, gvr schema.GroupVersionResource) *Objects {
	o := &Objects{gvr: gvr}
	o.watcher = newWatcher(of, number, cluster, access, resource{
		name: gvr.GroupResource().String(), path: o.path("", ""), list: acceptAny, watch: acceptAny,
		room:    room{read: maxList, limit: maxList, objects: maxObjects, weight: maxStored},
		example: &item{}, store: &o.store, again: o.store.again,
		page:   func(d *document, room *room) (listing, error) { return (&objectReader{document: d}).list(room) },
		events: func(d *document) func() (event, error) { return (&objectReader{document: d}).next },
	})
	o.owner = o
	o.live = newLookups(o.name, o.get)
	o.live.places = make(chan struct{}, maxObjectGets)
	o.live.kept = func(a answer) (time.Duration, int) {
		lasts := foundFor
		if a.stored == nil && a.list == nil {
			lasts = absentFor
		}
		return lasts, 1 + a.weight*(maxFound-1)/maxListed
	}
	return o
}

// Identity implements chain.Resource.
func (o *Objects) Identity() string { return fmt.Sprint("objects ", o.number) }

// Get implements hook.Objects: what the watch has brought, while it is fresh, or else
// a live GET.
func (o *Objects) Get(namespace, name string, deadline time.Time) (*hook.Stored, error) {
	if stored, err := o.Known(namespace, name); !errors.Is(err, hook.ErrNotLookedUp) {
		return stored, err
	}
	a, err := o.live.ask(wanted{namespace, name}, deadline)
	if err != nil {
		return nil, o.unknown(err)
	}
	return a.stored, nil
}

// Known implements hook.KnownObjects: what the watch has brought, while it is fresh, or a
// live GET a moment ago.
func (o *Objects) Known(namespace, name string) (*hook.Stored, error) {
	if !isObject(namespace, name) {
		return nil, nil //nolint:nilnil // it would be another path of the API
	}
	if o.health.fresh(time.Now()) {
		if stored, ok := o.store.object(namespace, name); ok {
			return stored, nil
		}
	}
	if a, ok := o.live.known(wanted{namespace, name}); ok {
		return a.stored, nil
	}
	return nil, hook.ErrNotLookedUp
}

// List implements hook.Objects: what the watch has brought, while it is fresh and all
// of it is kept, or else a live LIST.
func (o *Objects) List(namespace string, deadline time.Time) ([]*hook.Stored, error) {
	if list, err := o.KnownList(namespace); !errors.Is(err, hook.ErrNotLookedUp) {
		return list, err
	}
	a, err := o.live.ask(wanted{namespace: namespace}, deadline)
	if err != nil {
		return nil, o.unknown(err)
	}
	return slices.Clone(a.list), nil
}

// KnownList implements hook.KnownObjects, as Known does.
func (o *Objects) KnownList(namespace string) ([]*hook.Stored, error) {
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, nil
	}
	if o.health.fresh(time.Now()) {
		if list, whole := o.store.list(namespace); whole {
			return slices.Clone(list), nil
		}
	}
	if a, ok := o.live.known(wanted{namespace: namespace}); ok {
		return slices.Clone(a.list), nil
	}
	return nil, hook.ErrNotLookedUp
}

// unknown is the error of what is not known.
func (o *Objects) unknown(err error) error { return fmt.Errorf("%s are not synced: %w", o.name, err) }

// isObject reports whether an object may have the name.
func isObject(namespace, name string) bool {
	return (namespace == "" || len(validation.IsDNS1123Label(namespace)) == 0) &&
		name != "" && len(name) <= maxName && len(content.IsPathSegmentName(name)) == 0
}

// path is where the API has the object, or the objects of a namespace, or all.
func (o *Objects) path(namespace, name string) []string {
	at := []string{"apis", o.gvr.Group, o.gvr.Version}
	if o.gvr.Group == "" {
		at = []string{"api", o.gvr.Version}
	}
	if namespace != "" {
		at = append(at, "namespaces", namespace)
	}
	at = append(at, o.gvr.Resource)
	if name != "" {
		at = append(at, name)
	}
	return at
}

// get asks the cluster.
func (o *Objects) get(ctx context.Context, q wanted) (a answer, err error) {
	if o.broken != nil {
		return a, o.broken
	}
	if q.name == "" {
		a, err = o.getList(ctx, q.namespace)
	} else {
		a, err = o.getOne(ctx, q)
	}
	if f, ok := errors.AsType[failure](err); ok && apierrors.IsNotFound(f) {
		if q.name != "" && f.stated {
			return answer{}, nil
		}
		return answer{}, told{errUnserved}
	}
	return a, err
}

func (o *Objects) getOne(ctx context.Context, q wanted) (answer, error) {
	body, err := o.client.get(ctx, acceptAny, nil, o.path(q.namespace, q.name)...)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = body.Close() }()
	r := objectReader{document: newDocument(&budget{body, maxObject, maxObject})}
	one, err := r.read()
	switch {
	case err != nil:
		return answer{}, failureOf(err)
	case one.Name != q.name || one.Namespace != q.namespace:
		return answer{}, failureOf(errNoJSON) // it may be anything
	case one.stored == nil:
		return answer{}, told{errTooLarge}
	}
	return answer{stored: one.stored, weight: one.weight}, nil
}

func (o *Objects) getList(ctx context.Context, namespace string) (answer, error) {
	left := room{read: maxListBytes, limit: maxListBytes, objects: maxObjects, weight: maxListed}
	page, err := o.listed(ctx, &metav1.ListOptions{}, &left, o.path(namespace, "")...)
	if err != nil {
		if f, ok := errors.AsType[failure](err); ok && f.cause == CauseTooLarge {
			err = told{errTooMany}
		}
		return answer{}, err
	}
	read := page.(*items)
	a := answer{list: make([]*hook.Stored, 0, len(read.Items))}
	for _, one := range read.Items {
		switch {
		case one.stored == nil:
			return answer{}, told{errTooMany}
		case namespace != "" && one.Namespace != namespace:
			return answer{}, failureOf(errNoJSON)
		}
		a.list, a.weight = append(a.list, one.stored), a.weight+one.weight
	}
	if read.Continue != "" {
		return answer{}, told{errTooMany}
	}
	slices.SortFunc(a.list, compareStored)
	return a, nil
}

// compareStored orders objects by namespace and name.
func compareStored(a, b *hook.Stored) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// full names the resource with its version, as kubectl does.
func (o *Objects) full() string {
	if o.gvr.Group == "" {
		return o.gvr.Resource + "." + o.gvr.Version
	}
	return o.gvr.Resource + "." + o.gvr.Version + "." + o.gvr.Group
}

// String names the resource and the cluster.
func (o *Objects) String() string { return o.full() + " of cluster " + o.cluster }

// status implements opened.
func (o *Objects) status(now time.Time) Status {
	status := Status{Cluster: o.cluster, Resource: o.full(), LiveGets: o.live.gets.Load()}
	o.store.into(&status)
	o.health.into(&status, now)
	return status
}
