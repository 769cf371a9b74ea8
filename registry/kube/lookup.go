// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/match"
)

const (
	// maxWait bounds what one admission waits for a namespace; it is never more
	// than half of the time that it has left.
	maxWait = 500 * time.Millisecond
	// maxGets bounds the live GETs of one cluster that are under way.
	maxGets = 16
	// foundFor is how long an answer counts: the watch brings the namespace within
	// moments, and if it is broken, the answer is not asked for by each admission.
	foundFor = 3 * time.Second
	// maxFound bounds the answers that are kept.
	maxFound = 1024
)

// What a user is told. The API's own words may name hosts and rights.
var (
	errNoTime    = errors.New("there is no time left to ask the cluster's API")
	errNoAnswer  = errors.New("the cluster's API did not answer in time")
	errForbidden = errors.New("the cluster's API does not let the dispatcher read namespaces")
	errFailed    = errors.New("the cluster's API could not be asked")
)

// lookups asks the cluster for single namespaces: for each at most once at a
// time, on behalf of all who wait.
type lookups struct {
	get    func(ctx context.Context, name string) (map[string]string, error)
	places chan struct{}
	gets   atomic.Uint64

	mu      sync.Mutex
	flights map[string]*flight
	found   map[string]found
}

// flight is a GET under way.
type flight struct {
	done   chan struct{} // closed when the rest is set
	labels map[string]string
	err    error
}

type found struct {
	labels map[string]string // read only
	until  time.Time
}

func newLookups(get func(ctx context.Context, name string) (map[string]string, error)) *lookups {
	return &lookups{
		get:     get,
		places:  make(chan struct{}, maxGets),
		flights: map[string]*flight{},
		found:   map[string]found{},
	}
}

// known returns what the cluster has said a moment ago, or ErrNotLookedUp. A name
// that none can have would be another path of the API: it is not asked for.
func (l *lookups) known(name string) (labels map[string]string, err error) {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return nil, match.ErrNoNamespace
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer, ok := l.found[name]; ok && !time.Now().After(answer.until) {
		return answer.labels, nil
	}
	return nil, match.ErrNotLookedUp
}

// namespace asks the cluster, if it has not asked it a moment ago.
func (l *lookups) namespace(name string, deadline time.Time) (labels map[string]string, err error) {
	if labels, err := l.known(name); !errors.Is(err, match.ErrNotLookedUp) {
		return labels, err
	}
	wait := maxWait
	if !deadline.IsZero() {
		wait = min(wait, time.Until(deadline)/2)
	}
	if wait <= 0 {
		return nil, errNoTime
	}
	// The caller's shutdown and trace do not matter to an answer that others may
	// wait for.
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return l.ask(ctx, name)
}

// ask waits for the GET that is under way, or does one. One that failed for lack
// of its own asker's time is not the answer for those who have more.
func (l *lookups) ask(ctx context.Context, name string) (map[string]string, error) {
	for {
		f, mine := l.join(name)
		if mine {
			f.labels, f.err = l.fetch(ctx, name)
			l.land(name, f)
			return f.labels, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, errNoAnswer
		}
		if !errors.Is(f.err, errNoAnswer) {
			return f.labels, f.err
		}
	}
}

// join returns the flight for a name, and whether it is the caller's to do.
func (l *lookups) join(name string) (f *flight, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flights[name]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	l.flights[name] = f
	return f, true
}

// fetch does one GET, in one of the places.
func (l *lookups) fetch(ctx context.Context, name string) (map[string]string, error) {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return nil, errNoAnswer
	}
	defer func() { <-l.places }()
	l.gets.Add(1)
	labels, err := l.get(ctx, name)
	if err != nil {
		return nil, reason(ctx, err)
	}
	return labels, nil
}

// land hands the answer to those who wait, and keeps a good one for a while.
func (l *lookups) land(name string, f *flight) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, name)
	close(f.done)
	if f.err != nil {
		return
	}
	if len(l.found) >= maxFound {
		maps.DeleteFunc(l.found, func(_ string, a found) bool { return now.After(a.until) })
	}
	if len(l.found) < maxFound {
		l.found[name] = found{f.labels, now.Add(foundFor)}
	}
}

// reason maps what went wrong to what a user may know.
func reason(ctx context.Context, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return match.ErrNoNamespace
	case ctx.Err() != nil:
		return errNoAnswer
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return errForbidden
	}
	return errFailed
}
