// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Unconnected is a Target as a Resource that nobody connects, and that is ready at
// once. Whoever has a client embeds it, and opens and asks the Target.
type Unconnected struct{ *transport.Target }

// Identity implements chain.Resource.
func (u Unconnected) Identity() string { return u.Target.Identity().String() }

// Open does nothing.
func (Unconnected) Open(context.Context) {}

// Ready returns nil.
func (Unconnected) Ready(*chain.DryRun) error { return nil }

// Busy reports whether calls are under way.
func (u Unconnected) Busy() bool { return u.Outstanding() > 0 }

// String returns the URL.
func (u Unconnected) String() string { return u.URL() }

// held is a Resource that Snapshots have.
type held struct {
	chain.Resource
	target    *transport.Target // that it is; nil: it is something else
	snapshots int               // how many have it
	// proven: it has answered, or took part in a cold start. It is not asked again,
	// whatever Snapshot has it.
	proven  bool
	waiting *waiting
}

// waiting is why a Resource is not ready: always the latest reason. A Snapshot that
// is served meanwhile points at it.
type waiting struct{ latest atomic.Pointer[error] }

// Error returns the text of the latest reason.
func (w *waiting) Error() string { return w.Unwrap().Error() }

// Unwrap returns the latest reason.
func (w *waiting) Unwrap() error { return *w.latest.Load() }

// open opens Resources, all at once: none waits for another, which may belong to
// another cluster.
func open(ctx context.Context, list []*held) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range list {
		all.Go(func() { h.Open(ctx) })
	}
	all.Wait()
}

func prove(list []*held) {
	for _, h := range list {
		h.proven = true
	}
}
