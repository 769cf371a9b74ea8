// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// What one cluster's API may send. The bytes of a list and of an object are read
// and mostly dropped: they cost time, and no memory.
const (
	// listTimeout bounds one page of a list.
	listTimeout = 10 * time.Second
	// maxList bounds the bytes of all pages of a list.
	maxList = 256 << 20
	// maxNamespaces bounds the namespaces that are kept. Those beyond it are asked
	// for one by one.
	maxNamespaces = 50_000
	// maxObject bounds one Namespace, and one event of a watch, in bytes: etcd takes
	// 1.5 MiB, and JSON writes six bytes for some.
	maxObject = 16 << 20
	// eventCost is what an event counts at least, in bytes; watchRate is how many
	// bytes of events are taken in a second, after the first watchBurst: 5,000 events.
	// A watch that says more is read at that pace.
	eventCost  = 4 << 10
	watchRate  = 5_000 * eventCost
	watchBurst = 64 << 20
)

// listWatch is the cache.ListerWatcher of a watcher: it takes turns with the other
// clusters and records how it went.
type listWatch struct {
	*watcher
	room *room
}

// room is what is left for the list that is being read. The reflector asks for its
// pages one after the other.
type room struct {
	read    int64 // bytes, of the limit
	limit   int64
	objects int
	weight  int // of what is kept
}

// listing is a list as it was read. Its continue token is empty where there is no room
// for what follows.
type listing = runtime.Object

type event = watch.Event

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its lists:
// a list has an end, which gives its place to the next cluster.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (l listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext. A cluster lists one
// resource at a time, so that one whose API hangs holds one of the places.
func (l listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := enter(ctx, l.client.lists); err != nil {
		return nil, err
	}
	defer func() { <-l.client.lists }()
	if err := enter(ctx, l.of.lists); err != nil {
		return nil, err
	}
	defer func() { <-l.of.lists }()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if o.Continue == "" {
		*l.room = l.resource.room
	}
	list, err := l.listed(ctx, &o, l.room)
	if err != nil {
		l.failed(err)
		return nil, err
	}
	return list, nil
}

// enter waits for one of the places, or until ctx is done.
func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listed reads one page of a list.
func (w *watcher) listed(ctx context.Context, o *metav1.ListOptions, room *room, path ...string) (listing, error) {
	if len(path) == 0 {
		path = w.path
	}
	body, err := w.client.get(ctx, w.list, queryOf(o), path...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	bytes := &budget{body, room.read, room.limit}
	list, err := w.page(newDocument(bytes), room)
	room.read = bytes.left
	if err != nil {
		return nil, failureOf(err)
	}
	return list, nil
}

// Watch implements cache.ListerWatcher.
func (l listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext implements cache.ListerWatcherWithContext. The reflector calls
// it once what it has listed is in the store.
func (l listWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	query := queryOf(&o)
	query.Set("watch", "true")
	body, err := l.client.get(ctx, l.resource.watch, query, l.path...)
	if err != nil {
		cancel()
		l.failed(err)
		return nil, err
	}
	w := &watching{cancel: cancel, body: body, events: make(chan watch.Event), done: make(chan struct{}), of: l.watcher}
	l.health.connected()
	l.attempted()
	go w.run(ctx)
	return w, nil
}

// watching is a watch that is open. It is a watch.Interface.
type watching struct {
	cancel context.CancelFunc
	body   io.ReadCloser
	events chan watch.Event
	done   chan struct{} // closed when run has returned
	of     *watcher
	stop   sync.Once
}

// run reads events until the watch ends.
func (w *watching) run(ctx context.Context) {
	defer close(w.done)
	defer close(w.events)
	defer func() { _ = w.body.Close() }()
	bytes := &budget{from: w.body, limit: maxObject}
	next := w.of.events(newDocument(bytes))
	var pace pace
	for {
		bytes.left = maxObject
		e, err := next()
		if err == nil {
			err = pace.take(ctx, max(eventCost, maxObject-bytes.left))
		}
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				w.of.failed(failureOf(err))
			}
			return
		}
		if !w.send(ctx, e) || w.of.again != nil && w.of.again() && !w.send(ctx, event{Type: watch.Error, Object: &expired}) {
			return
		}
	}
}

// expired makes the reflector list again.
var expired = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}

func (w *watching) send(ctx context.Context, e event) bool {
	select {
	case w.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// budget bounds what is read of the API, in bytes. Who reads more gets tooLarge.
type budget struct {
	from  io.Reader
	left  int64
	limit int64
}

// tooLarge says that the API sent more than is read.
type tooLarge struct{ limit int64 }

func (e tooLarge) Error() string { return fmt.Sprintf("it sent more than %d MiB", e.limit>>20) }

// Read implements io.Reader.
func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tooLarge{b.limit}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	return n, err
}

// pace is how far somebody may go, in bytes: watchBurst at once, and watchRate in a
// second. The zero value is one that has not begun.
type pace struct{ due time.Time }

// take waits until n bytes are within the pace, or ctx is done.
func (p *pace) take(ctx context.Context, n int64) error {
	const burst = time.Duration(float64(watchBurst) / watchRate * float64(time.Second))
	now := time.Now()
	if earliest := now.Add(-burst); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(time.Duration(n) * time.Second / watchRate)
	if !p.due.After(now) {
		return nil
	}
	timer := time.NewTimer(p.due.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// ResultChan implements watch.Interface.
func (w *watching) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface. The reflector stops each watch, also one that is
// over.
func (w *watching) Stop() {
	w.stop.Do(func() {
		w.cancel()
		<-w.done
		w.of.health.disconnected(time.Now())
	})
}
