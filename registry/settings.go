// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"log/slog"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Settings is the configuration of a Registry.
type Settings struct {
	Sources []manifest.Source
	// FileRoots are directories in which files may lie that manifests name, besides
	// the manifest's own (E17).
	FileRoots  []string
	Cell       string        // whose Clusters are served; "": all
	Interval   time.Duration // between two looks at the Sources; 2 s
	AllowEmpty bool          // an empty configuration may replace another (E12)
	Compile    compile.Options
	Logger     *slog.Logger // default: none
	// Resource returns a Target as the Resource that it is for whoever connects it. A
	// new webhook takes part once its Target is ready; all of them do at a cold start.
	// Default: Unconnected.
	Resource func(*transport.Target) chain.Resource
	// Replicas returns how many processes have the same Sources. What does not answer is
	// asked again that much less often, so that all together ask no more often than one
	// alone. nil: this one is alone.
	Replicas func() int
	// Changed, if not nil, is notified of every change of what is served or refused. The
	// next load waits for it: it must be quick and must not load.
	Changed func(Change)
}

// DefaultInterval is the default of Settings.Interval.
const DefaultInterval = 2 * time.Second

func (s Settings) withDefaults() Settings {
	if s.Interval <= 0 {
		s.Interval = DefaultInterval
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Resource == nil {
		s.Resource = func(t *transport.Target) chain.Resource { return Unconnected{t} }
	}
	if s.Changed == nil {
		s.Changed = func(Change) {}
	}
	return s
}

// replicas returns how many processes have the same Sources.
func (s *Settings) replicas() int {
	if s.Replicas == nil {
		return 1
	}
	return s.Replicas()
}

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

// Change is one change of what is served, or of what is refused.
type Change struct {
	// Snapshot is what is served from now on; nil if the change was refused. It
	// must not be kept: Snapshots go when no admission uses them any more.
	Snapshot *Snapshot
	// Problems are why the change was refused.
	Problems []manifest.Problem
}
