// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// pageSize is how many objects are asked for at once: one may have 1.5 MiB.
const pageSize = 20

// listWatch is the cache.ListerWatcher of a store: it makes items of what it reads, page
// by page, so that no list is held as trees.
type listWatch struct {
	dynamic.ResourceInterface
	store    *store
	selector string // by labels; "": all
	held     *int   // bytes, of the list under way
}

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its lists, which it
// would not bound.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (l listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (l listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" { // from the API server's cache, in one page
		o.ResourceVersion = ""
	}
	if o.Continue == "" {
		*l.held = 0
	}
	o.LabelSelector = l.selector
	page, err := l.ResourceInterface.List(ctx, o)
	if err != nil {
		l.store.tried(err)
		return nil, err
	}
	list := &itemList{}
	list.ResourceVersion, list.Continue = page.GetResourceVersion(), page.GetContinue()
	for i := range page.Items {
		it, err := itemOf(&page.Items[i])
		if err != nil {
			l.store.tried(err)
			return nil, err
		}
		if *l.held += it.size(); *l.held > maxHeld {
			it.json, it.status = nil, nil
		}
		list.Items = append(list.Items, it)
		page.Items[i] = unstructured.Unstructured{}
	}
	return list, nil
}

// Watch implements cache.ListerWatcher.
func (l listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (l listWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector = l.selector
	w, err := l.ResourceInterface.Watch(ctx, o)
	l.store.tried(err)
	if err != nil {
		return nil, err
	}
	c := &converting{Interface: w, store: l.store, events: make(chan watch.Event), stopped: make(chan struct{}), done: make(chan struct{})}
	go c.run()
	return c, nil
}

// converting is a watch whose objects are items.
type converting struct {
	watch.Interface
	store         *store
	events        chan watch.Event
	stop          sync.Once
	stopped, done chan struct{}
}

func (c *converting) run() {
	defer close(c.done)
	defer close(c.events)
	for e := range c.Interface.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
			it, err := itemOf(u)
			if err != nil {
				continue
			}
			e.Object = it
			c.store.tried(nil) // also a bookmark, which comes every minute
		}
		select {
		case c.events <- e:
		case <-c.stopped:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (c *converting) ResultChan() <-chan watch.Event { return c.events }

// Stop implements watch.Interface.
func (c *converting) Stop() {
	c.stop.Do(func() {
		close(c.stopped)
		c.Interface.Stop()
		<-c.done
	})
}

// follow keeps the stores current until ctx is done.
func follow(ctx context.Context, client dynamic.Interface, namespace string, stores []*store) {
	var silent klog.Logger // what matters is in the status
	var running sync.WaitGroup
	for _, s := range stores {
		var from dynamic.ResourceInterface = client.Resource(s.GroupVersionResource)
		if s.namespaced {
			from = client.Resource(s.GroupVersionResource).Namespace(namespace)
		}
		r := cache.NewReflectorWithOptions(listWatch{from, s, "", new(int)}, &item{}, s,
			cache.ReflectorOptions{Name: fmt.Sprintf("mirror of %s", s.Resource), Logger: &silent})
		r.WatchListPageSize = pageSize
		running.Go(func() { r.RunWithContext(klog.NewContext(ctx, silent)) })
	}
	running.Wait()
}
