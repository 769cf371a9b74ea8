// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxWait bounds what one admission waits for an answer; it is never more
	// than half of the time that it has left.
	maxWait = 500 * time.Millisecond
	// maxGets bounds the live GETs of one cluster that are under way.
	maxGets = 16
	// foundFor is how long an answer counts: the watch brings the thing within
	// moments, and if it is broken, the answer is not asked for by each admission.
	foundFor = 3 * time.Second
	// maxFound bounds the answers that are kept, by what they take.
	maxFound = 1024
)

// What a user is told. The API's own words may name hosts and rights.
var (
	errNoTime   = errors.New("there is no time left to ask the cluster's API")
	errNoAnswer = errors.New("the cluster's API did not answer in time")
	errFailed   = errors.New("the cluster's API could not be asked")
)

// told is an error that a user may know as it is.
type told struct{ error }

// Unwrap returns the error.
func (t told) Unwrap() error { return t.error }

// lookups asks the cluster for single things: for each at most once at a time, on
// behalf of all who wait.
type lookups[K comparable, V any] struct {
	get    func(ctx context.Context, key K) (V, error)
	what   string // is asked for, as users know it
	places chan struct{}
	gets   atomic.Uint64
	// kept is how long an answer counts, and what it takes, of which maxFound may be
	// kept.
	kept func(V) (lasts time.Duration, weight int)

	mu      sync.Mutex
	flights map[K]*flight[V]
	found   map[K]found[V]
	weight  int // of found
}

// flight is a GET under way.
type flight[V any] struct {
	done   chan struct{} // closed when the rest is set
	answer V
	err    error
}

type found[V any] struct {
	answer V // read only
	weight int
	until  time.Time
}

func newLookups[K comparable, V any](what string, get func(ctx context.Context, key K) (V, error)) *lookups[K, V] {
	return &lookups[K, V]{
		get:     get,
		what:    what,
		places:  make(chan struct{}, maxGets),
		kept:    func(V) (time.Duration, int) { return foundFor, 1 },
		flights: map[K]*flight[V]{},
		found:   map[K]found[V]{},
	}
}

// known returns what the cluster has said a moment ago.
func (l *lookups[K, V]) known(key K) (answer V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, ok := l.found[key]; ok && !time.Now().After(f.until) {
		return f.answer, true
	}
	return answer, false
}

// ask asks the cluster, if it has not asked it a moment ago.
func (l *lookups[K, V]) ask(key K, deadline time.Time) (answer V, err error) {
	if answer, ok := l.known(key); ok {
		return answer, nil
	}
	wait := maxWait
	if !deadline.IsZero() {
		wait = min(wait, time.Until(deadline)/2)
	}
	if wait <= 0 {
		return answer, errNoTime
	}
	// The caller's shutdown and trace do not matter to an answer that others may
	// wait for.
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return l.wait(ctx, key)
}

// wait waits for the GET that is under way, or does one. One that failed for lack
// of its own asker's time is not the answer for those who have more.
func (l *lookups[K, V]) wait(ctx context.Context, key K) (answer V, err error) {
	for {
		f, mine := l.join(key)
		if mine {
			f.answer, f.err = l.fetch(ctx, key)
			l.land(key, f)
			return f.answer, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return answer, errNoAnswer
		}
		if !errors.Is(f.err, errNoAnswer) {
			return f.answer, f.err
		}
	}
}

// join returns the flight for a key, and whether it is the caller's to do.
func (l *lookups[K, V]) join(key K) (f *flight[V], mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flights[key]; f != nil {
		return f, false
	}
	f = &flight[V]{done: make(chan struct{})}
	l.flights[key] = f
	return f, true
}

// fetch does one GET, in one of the places.
func (l *lookups[K, V]) fetch(ctx context.Context, key K) (answer V, err error) {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return answer, errNoAnswer
	}
	defer func() { <-l.places }()
	l.gets.Add(1)
	if answer, err = l.get(ctx, key); err != nil {
		return answer, reason(ctx, err, l.what)
	}
	return answer, nil
}

// land hands the answer to those who wait, and keeps a good one for a while.
func (l *lookups[K, V]) land(key K, f *flight[V]) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, key)
	close(f.done)
	if f.err != nil {
		return
	}
	lasts, weight := l.kept(f.answer)
	l.forget(key)
	if l.weight+weight > maxFound {
		for key, f := range l.found {
			if now.After(f.until) {
				l.forget(key)
			}
		}
	}
	if l.weight+weight <= maxFound {
		l.found[key] = found[V]{f.answer, weight, now.Add(lasts)}
		l.weight += weight
	}
}

// forget drops an answer, if there is one. The lookups are locked.
func (l *lookups[K, V]) forget(key K) {
	l.weight -= l.found[key].weight
	delete(l.found, key)
}

// reason maps what went wrong to what a user may know.
func reason(ctx context.Context, err error, what string) error {
	if t, ok := errors.AsType[told](err); ok {
		return t.error
	}
	switch {
	case ctx.Err() != nil:
		return errNoAnswer
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster's API does not let the dispatcher read %s", what)
	}
	return errFailed
}
