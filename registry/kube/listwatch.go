// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// listTimeout bounds one page of a list.
const listTimeout = 10 * time.Second

// listWatch is the cache.ListerWatcher of a Source: it takes turns with the other
// clusters and records how it went.
type listWatch struct{ *Source }

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its lists:
// a list has an end, which gives its place to the next cluster.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (l listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (l listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	select {
	case l.lists <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.lists }()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := l.api.List(ctx, o)
	if err != nil {
		l.failed(err)
		return nil, err
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
	w, err := l.api.Watch(ctx, o)
	if err != nil {
		l.failed(err)
		return nil, err
	}
	l.health.connected()
	l.attempted()
	return observed{w, &l.health}, nil
}

// observed tells the health when the watch is over: the reflector stops each.
type observed struct {
	watch.Interface
	health *health
}

// Stop implements watch.Interface.
func (o observed) Stop() {
	o.Interface.Stop()
	o.health.disconnected(time.Now())
}
