// SPDX-License-Identifier: Apache-2.0

// Package registry turns Configurations into immutable Snapshots: it reads
// Sources, reports every problem, and swaps the compiled whole atomically.
package registry

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Registry holds the current Snapshot. It is safe for concurrent use: what it
// returns, it returns at once, also while it loads.
type Registry struct {
	settings Settings
	compiler *compile.Compiler
	reload   chan struct{}
	rotation rotation
	problems atomic.Pointer[[]manifest.Problem]
	loads    atomic.Pointer[Loads]

	// turn has room for one: there is one load at a time, which may block and holds
	// no lock. What follows belongs to who has the turn.
	turn      chan struct{}
	reader    manifest.Reader
	tried     string // hash of the last input, good or bad
	populated []bool // which of the Sources held objects in the last good one; nil: there was none
}

// New returns a Registry without a Snapshot. It reads nothing yet.
func New(s Settings) *Registry {
	s = s.withDefaults()
	r := &Registry{
		settings: s,
		compiler: compile.NewCompiler(s.Compile),
		reload:   make(chan struct{}, 1),
		turn:     make(chan struct{}, 1),
		reader:   manifest.Reader{Sources: s.Sources, FileRoots: s.FileRoots, Cell: s.Cell},
		rotation: rotation{Settings: s, table: map[string]*held{}},
	}
	r.problems.Store(new([]manifest.Problem))
	r.loads.Store(new(Loads))
	return r
}

// settleTime is how long Run lets a changed Source come to rest before it
// reads it again: a file that is being written can look whole.
const settleTime = 50 * time.Millisecond

// Run loads at every interval and on Reload until ctx is done, and now if nothing is
// served yet.
func (r *Registry) Run(ctx context.Context) {
	ticker := time.NewTicker(r.settings.Interval)
	defer ticker.Stop()
	if r.Snapshot() == nil {
		r.look(ctx, 0)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.reload:
		}
		r.look(ctx, settleTime)
	}
}

// Reload makes Run load now.
func (r *Registry) Reload() {
	select {
	case r.reload <- struct{}{}:
	default: // one is waiting already
	}
}

// Load reads and compiles the sources once, swaps the Snapshot if there is no
// problem and something changed, and returns the problems.
func (r *Registry) Load() []manifest.Problem { return r.look(context.Background(), 0) }

// Close closes all Resources. Nothing may load, and no call be under way.
func (r *Registry) Close() { r.rotation.close() }

// look loads what has changed, and otherwise lets in what was pending and answers
// now. It blocks: for its turn, then for what it reads, for compiling, and like rotate.
// Nobody waits for it but the next look.
func (r *Registry) look(ctx context.Context, settle time.Duration) []manifest.Problem {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	defer r.rotation.retire()
	in, problems, news := r.read(ctx, settle)
	var served *Snapshot
	switch {
	case len(problems) > 0:
		r.refuse(problems)
	case news:
		served = r.try(ctx, in)
	}
	if served == nil {
		served = r.rotation.askAgain(ctx)
	}
	if served != nil {
		r.logLoaded(served)
	}
	return r.Problems()
}

// reads is how often a source is read that changes all the time.
const reads = 5

// read reads until two readings agree, with time to settle between them, so that
// neither a file being written nor a symbolic link being swapped shows as a
// mixture. It reports whether the input is news. Once ctx is done nothing is: a Source
// that gave up is no other configuration.
func (r *Registry) read(ctx context.Context, settle time.Duration) (in manifest.Input, problems []manifest.Problem, news bool) {
	in = r.reader.Read(ctx)
	for range reads {
		if in.Hash == r.tried || ctx.Err() != nil {
			return in, nil, false
		}
		select {
		case <-ctx.Done():
		case <-time.After(settle):
		}
		again := r.reader.Read(ctx)
		if again.Hash == in.Hash {
			r.tried = in.Hash
			return again, nil, true
		}
		in = again
	}
	r.tried = "" // whatever comes next is to be judged
	return in, []manifest.Problem{{Reason: "the sources change while they are read"}}, false
}

// try compiles a new input and brings it into service, or keeps the last good
// Snapshot and returns nil.
func (r *Registry) try(ctx context.Context, in manifest.Input) *Snapshot {
	if whole := r.rotation.whole; whole != nil && whole.Hash == in.Hash {
		r.problems.Store(new([]manifest.Problem))
		r.settings.Logger.Info("configuration is back to what is served", "snapshot", r.serving())
		r.settings.Changed(Change{Snapshot: r.Snapshot()})
		return nil
	}
	next, problems := r.compile(in)
	if len(problems) > 0 {
		r.refuse(problems)
		return nil
	}
	// Nothing below this line can fail.
	served := r.rotation.rotate(ctx, next)
	loads := r.Loads()
	r.loads.Store(&Loads{Good: loads.Good + 1, Bad: loads.Bad, Last: time.Now()})
	r.problems.Store(new([]manifest.Problem))
	r.populated = in.Populated
	return served
}

func (r *Registry) compile(in manifest.Input) (*Snapshot, []manifest.Problem) {
	var current *compile.Compiled
	if s := r.Snapshot(); s != nil {
		current = &s.Compiled
	}
	had, draining := r.rotation.targets()
	compiled, problems, _ := r.compiler.Compile(in, current, append(had, draining...), r.emptied(in)...)
	if compiled == nil {
		return nil, problems
	}
	return &Snapshot{Hash: in.Hash, Compiled: *compiled}, nil
}

// emptied reports Sources without any object where there was one (E12). Objects
// that cannot be read are problems of their own.
func (r *Registry) emptied(in manifest.Input) []manifest.Problem {
	if r.settings.AllowEmpty || len(in.Problems) > 0 {
		return nil
	}
	var problems []manifest.Problem
	none := !slices.Contains(in.Populated, true)
	for i, source := range r.settings.Sources {
		if !in.Populated[i] && (none || r.populated != nil && r.populated[i]) {
			problems = append(problems, manifest.Problem{File: source.Name(), Reason: "holds no object; an empty configuration needs allowEmpty: true"})
		}
	}
	return problems
}

// refuse keeps the Snapshot and remembers and logs why.
func (r *Registry) refuse(problems []manifest.Problem) {
	loads := r.Loads()
	loads.Bad++
	r.loads.Store(&loads)
	r.problems.Store(&problems)
	r.settings.Changed(Change{Problems: problems})
	for _, p := range problems {
		r.settings.Logger.Error("configuration refused", p.Attributes()...)
	}
	r.settings.Logger.Error("the last good configuration stays", "problems", len(problems), "serving", r.serving())
}

func (r *Registry) serving() string {
	if s := r.Snapshot(); s != nil {
		return s.ShortHash()
	}
	return "none"
}

func (r *Registry) logLoaded(s *Snapshot) {
	for _, w := range s.Warnings {
		r.settings.Logger.Warn("configuration warning", w.Attributes()...)
	}
	r.settings.Logger.Info("configuration loaded", "snapshot", s.ShortHash(),
		"clusters", len(s.Clusters), "targets", len(s.Targets), "warnings", len(s.Warnings), "pending", len(s.Pending))
}

// Validate compiles what is in the Sources as Load would and returns every problem and
// lint warning. What is compiled, nil where there are problems, is not for serving.
func Validate(s Settings) (snapshot *compile.Compiled, problems, warnings []manifest.Problem) {
	r := New(s)
	in := r.reader.Read(context.Background())
	return r.compiler.Compile(in, nil, nil, r.emptied(in)...)
}

// Snapshot returns the current Snapshot, or nil before the first good Load.
func (r *Registry) Snapshot() *Snapshot { return r.rotation.current.Load() }

// Problems returns the problems of the last Load; the current Snapshot is then
// older than the sources.
func (r *Registry) Problems() []manifest.Problem { return *r.problems.Load() }

// Targets returns the Targets of the Snapshots that are alive: of the current one, of
// the next one while it is being prepared, and of those that admissions still use.
func (r *Registry) Targets() []*transport.Target {
	had, _ := r.rotation.targets()
	return had
}

// Draining returns the Targets that no Snapshot has any more and that still have
// calls under way.
func (r *Registry) Draining() []*transport.Target {
	_, draining := r.rotation.targets()
	return draining
}

// Loads are counts of the changed configurations that a Registry has read.
type Loads struct {
	Good, Bad int64
	// Last is when the configuration that is served was loaded; zero: none is.
	Last time.Time
}

// Loads returns the counts as of now.
func (r *Registry) Loads() Loads { return *r.loads.Load() }
