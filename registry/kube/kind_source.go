// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const (
	// kindsInterval is the time between two looks at the index of a cluster's OpenAPI
	// documents, which says which of them have changed: a change counts after that.
	kindsInterval = 10 * time.Second
	kindsTimeout  = 10 * time.Second // for one look, with the documents that are read in it
	// maxGroupVersions bounds the documents of one cluster, and maxKinds what all of them
	// take that are kept (policyschema.ReadDocument).
	maxGroupVersions = 64
	maxKinds         = 50_000
	// unaskedFor is how long nobody has asked for a document that gives its place to another.
	unaskedFor = 10 * time.Minute
	// maxIndex bounds the bytes of the index that are read in one look, and maxDocuments those
	// of documents in a kindsInterval, however many looks new documents cause. Kubernetes' own
	// are of 1.6 MB at most.
	maxIndex     = 4 << 20
	maxDocuments = 32 << 20
	// maxLooks bounds the clusters whose documents are read at once: each may take maxKinds
	// before it is seen that it is too much. Lists do not wait for them.
	maxLooks = 8
)

var (
	errNoGroupVersion = errors.New("it is none of the cluster's groups and versions")
	errManyKinds      = errors.New("there are more types than are kept")
)

// Kinds are the types of the kinds of one cluster, as its OpenAPI v3 documents have them, by
// group and version. What is asked for is read, on a goroutine of their own, and read again
// when it has changed. They are a chain.Resource.
type Kinds struct {
	of      *Sources
	number  int
	cluster string
	access  manifest.KubeAccess
	client  *client
	broken  error // why there is no client
	stop    context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // somebody asks for a document that is new

	mu        sync.Mutex
	documents map[schema.GroupVersion]*openAPI
}

func newKinds(of *Sources, number int, cluster string, access manifest.KubeAccess, known []schema.GroupVersion) *Kinds {
	k := &Kinds{of: of, number: number, cluster: cluster, access: access, wake: make(chan struct{}, 1), documents: map[schema.GroupVersion]*openAPI{}}
	k.client, k.broken = of.client(cluster, access)
	k.want(known)
	return k
}

var _ chain.KindSource = (*Kinds)(nil)

// want adds documents that are known to be asked for.
func (k *Kinds) want(known []schema.GroupVersion) {
	for _, of := range known {
		_, _ = k.document(of) // of which some may be too many
	}
}

// Identity implements chain.Resource.
func (k *Kinds) Identity() string { return fmt.Sprint("kinds ", k.number) }

// String names the cluster.
func (k *Kinds) String() string { return "kinds of cluster " + k.cluster }

// Open begins to read, and waits until what is known to be asked for is read, or could not
// be, or ctx is done.
func (k *Kinds) Open(ctx context.Context) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	first := k.all()
	k.running.Go(func() { k.run(running) })
	k.of.openedKinds(k)
	for _, d := range first {
		select {
		case <-d.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Ready returns nil: nothing waits for a cluster's API.
func (k *Kinds) Ready(*chain.DryRun) error { return nil }

// Busy returns false: who asks while they are closed is told what is known.
func (k *Kinds) Busy() bool { return false }

// Close ends the reading.
func (k *Kinds) Close() {
	k.of.closedKinds(k)
	k.stop()
	k.running.Wait()
}

// Types implements hook.Kinds: with what was read, or else once it is, for which it waits at
// most maxWait, and half of the time until the deadline.
func (k *Kinds) Types(of schema.GroupVersion, deadline time.Time) (*policyschema.Types, error) {
	d, err := k.document(of)
	if err != nil {
		return nil, err
	}
	wait := maxWait
	if !deadline.IsZero() {
		wait = min(wait, time.Until(deadline)/2)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.tried:
	case <-timer.C:
		return nil, errNoAnswer
	}
	return k.outcome(d)
}

// Known implements hook.KnownKinds.
func (k *Kinds) Known(of schema.GroupVersion) (*policyschema.Types, error) {
	d, err := k.document(of)
	if err != nil {
		return nil, err
	}
	select {
	case <-d.tried:
		return k.outcome(d)
	default:
		return nil, hook.ErrNotLookedUp
	}
}

func (k *Kinds) all() map[schema.GroupVersion]*openAPI {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.documents)
}

// run reads until ctx is done.
func (k *Kinds) run(ctx context.Context) {
	defer func() {
		if k.client != nil {
			k.client.close()
		}
	}()
	var left allowance
	for {
		if all := k.all(); len(all) > 0 {
			k.look(ctx, all, left.at(time.Now()))
		}
		timer := time.NewTimer(kindsInterval)
		select {
		case <-k.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// allowance is what may be read of documents in a kindsInterval.
type allowance struct {
	budget
	renewed time.Time
}

// at returns what is left of it.
func (a *allowance) at(now time.Time) *budget {
	if now.Sub(a.renewed) >= kindsInterval {
		a.budget, a.renewed = budget{left: maxDocuments, limit: maxDocuments}, now
	}
	return &a.budget
}

// look reads the documents that are new, and those that have changed, as far as left allows.
// It waits for its turn among the clusters.
func (k *Kinds) look(ctx context.Context, all map[schema.GroupVersion]*openAPI, left *budget) {
	select {
	case k.of.kinds.looks <- struct{}{}:
		defer func() { <-k.of.kinds.looks }()
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, kindsTimeout)
	defer cancel()
	marks, err := k.index(ctx, all)
	for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }) {
		d := all[of]
		mark, served := marks[pathOf(of)]
		switch {
		case err != nil:
			k.came(of, d, nil, 0, "", err)
		case !served:
			k.came(of, d, nil, 0, "", told{errNoGroupVersion})
		case !k.knows(d, mark):
			types, size, err := k.read(ctx, of, left)
			k.came(of, d, types, size, mark, err)
		}
	}
}
