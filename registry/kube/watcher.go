// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// watcher lists and watches one resource of one cluster while it is open, and keeps a
// store current with it. It is what all chain.Resources of this package have in common.
type watcher struct {
	resource
	of      *Sources
	owner   opened // whose part it is
	number  int
	cluster string
	access  manifest.KubeAccess
	client  *client
	broken  error                 // why there is no client
	beside  func(context.Context) // runs while it is open; nil: nothing does

	health  health
	tried   chan struct{} // closed once it was listed, or could not be
	tryOnce sync.Once
	stop    context.CancelFunc // of what goes on while it is open
	running sync.WaitGroup
}

// resource is what one resource of an API is: where it is, how it is read, and where
// it is kept.
type resource struct {
	name  string // as users know it
	path  []string
	list  string // the representation of lists, and that of a watch's events
	watch string
	page  func(*document, *room) (listing, error)
	// events returns what reads the next event; io.EOF: there is none.
	events  func(*document) func() (event, error)
	room    room           // for a list
	again   func() bool    // it should be listed again; nil: never
	example runtime.Object // of the type of what page and events bring
	store   cache.ReflectorStore
}

func newWatcher(of *Sources, number int, cluster string, access manifest.KubeAccess, r resource) *watcher {
	w := &watcher{resource: r, of: of, number: number, cluster: cluster, access: access, tried: make(chan struct{})}
	w.client, w.broken = of.client(cluster, access)
	return w
}

// Open begins to watch, and waits until everything has been listed, or could not be,
// or ctx is done. The watch goes on until Close.
func (w *watcher) Open(ctx context.Context) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.running.Go(func() { w.run(running) })
	w.of.opened(w.owner)
	select {
	case <-w.tried:
	case <-ctx.Done():
	}
}

// Ready returns nil: nothing waits for a cluster's API. What is asked for and is not
// known is an error then.
func (w *watcher) Ready(*chain.DryRun) error { return nil }

// Busy returns false: who asks while it is closed asks the cluster.
func (w *watcher) Busy() bool { return false }

// Close ends the watch.
func (w *watcher) Close() {
	w.of.closed(w.owner)
	w.stop()
	w.running.Wait()
}

// String names the resource and the cluster.
func (w *watcher) String() string { return w.name + " of cluster " + w.cluster }

// watched returns w itself, for who has what it is a part of.
func (w *watcher) watched() *watcher { return w }

// run watches until ctx is done.
func (w *watcher) run(ctx context.Context) {
	if w.broken != nil {
		w.failed(w.broken)
		return
	}
	defer w.client.close()
	var besides sync.WaitGroup
	defer besides.Wait()
	if w.beside != nil {
		besides.Go(func() { w.beside(ctx) })
	}
	var silent klog.Logger // what matters is in Status and in our own log
	r := cache.NewReflectorWithOptions(listWatch{w, new(room)}, w.example, w.store, cache.ReflectorOptions{Name: w.String(), Logger: &silent})
	r.RunWithContext(klog.NewContext(ctx, silent))
}

// attempted ends the wait for the first list.
func (w *watcher) attempted() { w.tryOnce.Do(func() { close(w.tried) }) }

// failed records why a list or a watch did not begin.
func (w *watcher) failed(err error) {
	w.health.failed(err)
	w.attempted()
}

// lookAtCredential records whether the files of the credential are good, though
// nothing may be asked for long, and reports whether that is news.
func (w *watcher) lookAtCredential() (err error, news bool) {
	if w.broken != nil {
		return w.broken, false
	}
	_, err = w.client.credentials.Current()
	return err, w.health.proves(err)
}
