// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"log/slog"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// reads is how often a source is read that changes all the time.
const reads = 5

// load reads until two readings agree, with settle between them, so that
// neither a file being written nor a symbolic link being swapped shows as a
// mixture.
func (r *Registry) load(settle func()) []Problem {
	in := r.source.read()
	for range reads {
		if in.hash == r.tried {
			return r.Problems()
		}
		settle()
		again := r.source.read()
		if again.hash == in.hash {
			return r.try(again)
		}
		in = again
	}
	r.tried = "" // whatever comes next is to be judged
	return r.refuse([]Problem{{Reason: "the directories change while they are read"}})
}

// try compiles a new input and swaps, or keeps the last good Snapshot.
func (r *Registry) try(in input) []Problem {
	r.tried = in.hash
	if whole := r.rotation.whole; whole != nil && whole.Hash == in.hash {
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
	r.populated = r.source.populated()
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

func (r *Registry) compile(in input) (*Snapshot, []Problem) {
	c := newCompiler(r.settings, r.cel, in, r.Snapshot(), r.living())
	c.problem(r.emptied(in)...)
	next := c.compile()
	if next == nil {
		return nil, c.problems
	}
	next.Hash = in.hash
	return next, nil
}

// newCompiler returns a compiler of in, where current, which may be nil, is what is
// served. A Target that is living is kept where it is wanted again.
func newCompiler(s Settings, cel *celenv.Compiler, in input, current *Snapshot, living []*webhook.Target) *compiler {
	return &compiler{
		settings:    s,
		cel:         cel,
		now:         time.Now(),
		objects:     in.objects,
		pathIDs:     map[pathKey]*entry{},
		files:       in.files,
		kubeconfigs: in.kubeconfigs,
		current:     current,
		accesses:    map[string]KubeAccess{},
		endpoints:   map[endpointsKey][]webhook.EndpointSpec{},
		targets:     targetTable{known: byIdentity(living), found: map[webhook.Identity]*webhook.Target{}},
		problems:    append([]Problem(nil), in.problems...),
	}
}

// emptied reports sources without any object where there was one (E12). Objects
// that cannot be read are problems of their own.
func (r *Registry) emptied(in input) []Problem {
	if r.settings.AllowEmpty || len(in.problems) > 0 {
		return nil
	}
	var problems []Problem
	now := r.source.populated()
	for _, path := range r.source.paths {
		if !now[path] && (r.populated[path] || len(now) == 0) {
			problems = append(problems, Problem{File: path, Reason: "holds no object; an empty configuration needs allowEmpty: true"})
		}
	}
	return problems
}

func byIdentity(targets []*webhook.Target) map[webhook.Identity]*webhook.Target {
	table := make(map[webhook.Identity]*webhook.Target, len(targets))
	for _, t := range targets {
		table[t.Identity()] = t
	}
	return table
}

// refuse keeps the Snapshot and remembers and logs why.
func (r *Registry) refuse(problems []Problem) []Problem {
	r.problems.Store(&problems)
	r.loads.fail()
	r.changed(Change{Problems: problems})
	for _, p := range problems {
		r.settings.Logger.Error("configuration refused", p.attributes()...)
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
		r.settings.Logger.Warn("configuration warning", w.attributes()...)
	}
	r.settings.Logger.Info("configuration loaded", "snapshot", s.ShortHash(),
		"clusters", len(s.Clusters), "targets", len(s.Targets), "warnings", len(s.Warnings), "pending", len(s.Pending))
}

func (p Problem) attributes() []any {
	return []any{slog.String("file", p.File), slog.String("object", p.Object),
		slog.String("field", p.Field), slog.String("value", p.Value), slog.String("reason", p.Reason)}
}

// Validate compiles what is in paths (files or directories) as Load would and
// returns every problem and lint warning. The Snapshot, nil where there are
// problems, is not for serving.
func Validate(s Settings, paths []string) (snapshot *Snapshot, problems, warnings []Problem) {
	s = s.withDefaults()
	s.Directories = paths
	r := New(s)
	in := r.source.read()
	c := newCompiler(s, r.cel, in, nil, nil)
	c.problem(r.emptied(in)...)
	snapshot = c.compile()
	return snapshot, c.problems, c.warnings
}
