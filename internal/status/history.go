// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const keptChanges = 50

// history is the last changes of the configuration.
type history struct {
	mu      sync.Mutex
	changes *ring[Change]
	last    Change
	since   time.Time // of the Snapshot that is served
	hash    string    // of that
	served  digests
}

func newHistory() history { return history{changes: newRing[Change](keptChanges)} }

// add records a change. What is refused for the same reasons as just before is no
// news.
func (h *history) add(now time.Time, c registry.Change) {
	entry := Change{Time: now.UTC(), Problems: []manifest.Problem{}, Added: []string{}, Removed: []string{}, Changed: []string{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Snapshot == nil {
		entry.Snapshot, entry.Refused, entry.Problems = h.last.Snapshot, true, c.Problems
		entry.Clusters, entry.Webhooks, entry.Pending = h.last.Clusters, h.last.Webhooks, h.last.Pending
		if h.last.Refused && slices.Equal(h.last.Problems, entry.Problems) {
			return
		}
	} else {
		h.serve(&entry, c.Snapshot)
	}
	h.last = entry
	h.changes.add(entry)
}

// serve fills in what s, which is served now, differs in from what was.
func (h *history) serve(entry *Change, s *registry.Snapshot) {
	if h.hash != s.Hash {
		h.hash, h.since = s.Hash, entry.Time
	}
	next := digestsOf(s)
	entry.Snapshot, entry.Clusters, entry.Pending = s.ShortHash(), len(s.Clusters), len(s.Pending)
	entry.Webhooks = len(next) - len(s.Clusters)
	if h.served != nil {
		entry.Added, entry.Removed, entry.Changed = next.differences(h.served)
	}
	h.served = next
}

// into copies the changes, the newest first, and since when what is served is.
func (h *history) into(s *Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.History = h.changes.newestFirst()
	if s.Snapshot != nil && s.Snapshot.Hash == h.hash {
		s.Snapshot.Since = h.since
	}
}
