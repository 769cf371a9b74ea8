// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// reads is how often a source is read that changes all the time.
const reads = 5

// load reads until two readings agree, with settle between them, so that
// neither a file being written nor a symbolic link being swapped shows as a
// mixture.
func (r *Registry) load(settle func()) []manifest.Problem {
	in := r.source.Read()
	for range reads {
		if in.Hash == r.tried {
			return r.Problems()
		}
		settle()
		again := r.source.Read()
		if again.Hash == in.Hash {
			return r.try(again)
		}
		in = again
	}
	r.tried = "" // whatever comes next is to be judged
	return r.refuse([]manifest.Problem{{Reason: "the directories change while they are read"}})
}

// try compiles a new input and swaps, or keeps the last good Snapshot.
func (r *Registry) try(in manifest.Input) []manifest.Problem {
	r.tried = in.Hash
	if whole := r.rotation.whole; whole != nil && whole.Hash == in.Hash {
		r.problems.Store(nil)
		r.settings.Logger.Info("configuration is back to what is served", "snapshot", r.serving())
		r.changed(Change{Snapshot: r.Snapshot()})
		return nil
	}
	next, problems := r.compile(in)
	if len(problems) > 0 {
		return r.refuse(problems)
	}
	r.prepare(next)
	// Nothing below this line can fail.
	r.rotate(next)
	r.loads.succeed()
	r.problems.Store(nil)
	r.populated = r.source.Populated()
	r.logLoaded(r.Snapshot())
	return nil
}

// prepare lets Prepare see the Targets and sources of the next Snapshot.
func (r *Registry) prepare(next *Snapshot) {
	if r.settings.Prepare == nil {
		return
	}
	r.next.Store(next)
	defer r.next.Store(nil)
	r.settings.Prepare()
}

func (r *Registry) compile(in manifest.Input) (*Snapshot, []manifest.Problem) {
	var current *compile.Compiled
	if s := r.Snapshot(); s != nil {
		current = &s.Compiled
	}
	compiled, problems, _ := r.compiler.Compile(in, current, r.living(), r.emptied(in)...)
	if compiled == nil {
		return nil, problems
	}
	return &Snapshot{Hash: in.Hash, Compiled: *compiled, users: new(atomic.Int64)}, nil
}

// emptied reports sources without any object where there was one (E12). Objects
// that cannot be read are problems of their own.
func (r *Registry) emptied(in manifest.Input) []manifest.Problem {
	if r.settings.AllowEmpty || len(in.Problems) > 0 {
		return nil
	}
	var problems []manifest.Problem
	now := r.source.Populated()
	for _, path := range r.source.Paths {
		if !now[path] && (r.populated[path] || len(now) == 0) {
			problems = append(problems, manifest.Problem{File: path, Reason: "holds no object; an empty configuration needs allowEmpty: true"})
		}
	}
	return problems
}

// refuse keeps the Snapshot and remembers and logs why.
func (r *Registry) refuse(problems []manifest.Problem) []manifest.Problem {
	r.problems.Store(&problems)
	r.loads.fail()
	r.changed(Change{Problems: problems})
	for _, p := range problems {
		r.settings.Logger.Error("configuration refused", p.Attributes()...)
	}
	r.settings.Logger.Error("the last good configuration stays", "problems", len(problems), "serving", r.serving())
	return problems
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

// Validate compiles what is in paths (files or directories) as Load would and
// returns every problem and lint warning. What is compiled, nil where there are
// problems, is not for serving.
func Validate(s Settings, paths []string) (snapshot *compile.Compiled, problems, warnings []manifest.Problem) {
	s.Directories = paths
	r := New(s)
	in := r.source.Read()
	return r.compiler.Compile(in, nil, nil, r.emptied(in)...)
}

// Loads are counts of the changed configurations that a Registry has read.
type Loads struct {
	Good, Bad int64
	// Last is when the configuration that is served was loaded; zero: none is.
	Last time.Time
}

// loads keeps the counts.
type loads struct {
	good, bad atomic.Int64
	last      atomic.Pointer[time.Time]
}

func (l *loads) succeed() {
	now := time.Now()
	l.last.Store(&now)
	l.good.Add(1)
}

func (l *loads) fail() { l.bad.Add(1) }

// Loads returns the counts as of now.
func (r *Registry) Loads() Loads {
	counts := Loads{Good: r.loads.good.Load(), Bad: r.loads.bad.Load()}
	if last := r.loads.last.Load(); last != nil {
		counts.Last = *last
	}
	return counts
}

// Change is one change of what is served, or of what is refused.
type Change struct {
	// Snapshot is what is served from now on; nil if the change was refused. It
	// must not be kept: Snapshots go when no admission uses them any more.
	Snapshot *Snapshot
	// Problems are why the change was refused.
	Problems []manifest.Problem
}

// changed tells whoever wants to know.
func (r *Registry) changed(c Change) {
	if r.settings.Changed != nil {
		r.settings.Changed(c)
	}
}
