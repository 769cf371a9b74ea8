// SPDX-License-Identifier: Apache-2.0

// Package registry turns Configurations into immutable Snapshots: it reads
// directories, reports every problem, and swaps the compiled whole atomically.
package registry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Settings is the configuration of a Registry.
type Settings struct {
	Directories []string
	// FileRoots are directories in which files may lie that manifests name, besides
	// the manifest's own (E17).
	FileRoots  []string
	Interval   time.Duration // between two looks at the directories; 2 s
	AllowEmpty bool          // an empty configuration may replace another (E12)
	Compile    compile.Options
	Logger     *slog.Logger // default: none
	// Prepare, if not nil, is called before a new Snapshot is swapped in, while
	// Registry.Targets and Registry.Namespaces return what it has: whoever looks up
	// addresses or fills caches does it now, so that a changed webhook or cluster is
	// not without for a while. It must return in bounded time.
	Prepare func()
	// Probe, if not nil, reports whether a Target answers, and answers the
	// Question if there is one, in bounded time. A new webhook takes part once its
	// Target does; all of them do at a cold start.
	Probe func(*transport.Target, *Question) error
	// Changed, if not nil, is told of every change of what is served or refused. It
	// is called under the Registry's lock: it must be quick and must not call back.
	Changed func(Change)
}

const defaultInterval = 2 * time.Second

func (s Settings) withDefaults() Settings {
	if s.Interval <= 0 {
		s.Interval = defaultInterval
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Registry holds the current Snapshot. It is safe for concurrent use.
type Registry struct {
	settings Settings
	compiler *compile.Compiler
	reload   chan struct{}
	snapshot atomic.Pointer[Snapshot]
	next     atomic.Pointer[Snapshot] // while it is being prepared
	problems atomic.Pointer[[]manifest.Problem]
	loads    loads
	leaving  atomic.Pointer[[]*transport.Target] // that no Snapshot has any more; replaced, never changed

	mu        sync.Mutex // one load at a time; guards what follows
	source    manifest.Source
	tried     string // hash of the last input, good or bad
	populated map[string]bool
	rotation  rotation
}

// New returns a Registry without a Snapshot. It reads nothing yet.
func New(s Settings) *Registry {
	s = s.withDefaults()
	return &Registry{
		settings: s,
		compiler: compile.NewCompiler(s.Compile),
		reload:   make(chan struct{}, 1),
		source:   manifest.Source{Paths: s.Directories, FileRoots: s.FileRoots},
	}
}

// Load reads and compiles the sources once, swaps the Snapshot if there is no
// problem and something changed, and returns the problems.
func (r *Registry) Load() []manifest.Problem { return r.look(func() {}) }

// look loads what has changed, and lets in what was pending and answers now.
func (r *Registry) look(settle func()) []manifest.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := r.load(settle)
	r.reprobe()
	return problems
}

// Snapshot returns the current Snapshot, or nil before the first good Load.
func (r *Registry) Snapshot() *Snapshot { return r.snapshot.Load() }

// Problems returns the problems of the last Load; the current Snapshot is then
// older than the sources.
func (r *Registry) Problems() []manifest.Problem {
	if ps := r.problems.Load(); ps != nil {
		return *ps
	}
	return nil
}

// Targets returns the Targets of the current Snapshot, and of the next one while
// it is being prepared.
func (r *Registry) Targets() []*transport.Target {
	var targets []*transport.Target
	seen := map[*transport.Target]bool{}
	for _, s := range []*Snapshot{r.snapshot.Load(), r.next.Load()} {
		if s == nil {
			continue
		}
		for _, t := range s.Targets {
			if !seen[t] {
				seen[t] = true
				targets = append(targets, t)
			}
		}
	}
	return targets
}

// Namespaces returns the clusters' sources of namespaces, of the current Snapshot,
// and of the next one while it is being prepared. One source may come twice.
func (r *Registry) Namespaces() []match.Namespaces {
	var sources []match.Namespaces
	for _, s := range []*Snapshot{r.snapshot.Load(), r.next.Load()} {
		if s == nil {
			continue
		}
		for _, c := range s.Clusters {
			if c.Namespaces != nil {
				sources = append(sources, c.Namespaces)
			}
		}
	}
	return sources
}

// settleTime is how long Run lets a changed directory come to rest before it
// reads it again: a file that is being written can look whole.
const settleTime = 50 * time.Millisecond

// Run loads at every interval and on Reload until ctx is done.
func (r *Registry) Run(ctx context.Context) {
	ticker := time.NewTicker(r.settings.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.reload:
		}
		r.look(func() { wait(ctx, settleTime) })
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Reload makes Run load now.
func (r *Registry) Reload() {
	select {
	case r.reload <- struct{}{}:
	default: // one is waiting already
	}
}
