// SPDX-License-Identifier: Apache-2.0

// Package mirror keeps a directory of manifests equal to the objects of a Kubernetes API,
// for a dispatcher that reads the directory and needs no credential of that API.
//
// Each object is accepted alone: one that is at fault keeps its last accepted version or
// stays out, visibly. What is accepted is published as a whole, a generation, by swapping
// a symbolic link, and stays when the API is away.
package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// The defaults of Settings.
const (
	DefaultQuiet     = 100 * time.Millisecond
	DefaultLate      = 2 * time.Second
	DefaultSpread    = 20 * time.Second
	DefaultProbation = time.Minute
)

// Settings are what a Mirror needs to know.
type Settings struct {
	Client    dynamic.Interface
	Namespace string // of Secrets and ConfigMaps
	Directory string
	// Compile and FileRoots are those of the dispatcher.
	Compile   compile.Options
	FileRoots []string
	// Quiet is how long nothing may change before what has changed is judged, and Late
	// how long that may take at most.
	Quiet, Late time.Duration
	// Spread is the longest random delay before a change is served; 0: none.
	Spread time.Duration
	// Probation is how long a generation is on trial.
	Probation time.Duration
	// Live asks whether the dispatcher is alive. nil: nobody can be asked, and a crash is
	// one of the mirror.
	Live func(context.Context) error
	// Confirm is the name of a generation that may have lost much of what is served.
	Confirm string
	Logger  *slog.Logger
}

// Mirror mirrors an API.
type Mirror struct {
	settings Settings
	disk     disk
	compiler *compile.Compiler
	stores   []*store
	news     chan struct{}

	// What follows belongs to the goroutine of Run.
	serving     *generation
	accepted    map[string]*object // what was decided last, served or pending
	pending     *pending
	held        *Next // back, for what it has lost
	peaks       []peak
	trial       *trial
	quarantined []Quarantined
	refused     []Refused
	rejected    map[string]string // hash of what was refused, by key
	poison      poison            // what the processes before judged when they ended
	crashed     bool
	broken      string // why the directory cannot be written
	told        []byte

	first, last time.Time // when the change that is not judged yet began, and ended; zero: there is none
}

// poison is what an API had while the mirror ended.
type poison struct {
	Judging string `json:"judging"` // a sum of it
	Ended   int    `json:"ended"`   // so many times
}

// maxEnded is how often the mirror may end while it judges the same: a process ends for
// other reasons, too.
const maxEnded = 3

// pending is a generation that waits for its time.
type pending struct {
	generation
	at time.Time
}

// New returns a Mirror. It does nothing yet.
func New(s Settings) *Mirror {
	s.Quiet, s.Late, s.Probation = cmp.Or(s.Quiet, DefaultQuiet), cmp.Or(s.Late, DefaultLate), cmp.Or(s.Probation, DefaultProbation)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Mirror{settings: s, disk: disk{s.Directory}, compiler: compile.NewCompiler(s.Compile), news: make(chan struct{}, 1),
		accepted: map[string]*object{}, rejected: map[string]string{}}
	for _, r := range resources() {
		m.stores = append(m.stores, &store{resource: r, changed: m.noteworthy, items: map[string]*item{}})
	}
	return m
}

func (m *Mirror) noteworthy() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Run mirrors until ctx is done. The error is that its directory cannot be used.
func (m *Mirror) Run(ctx context.Context) error {
	if err := os.MkdirAll(m.disk.path, 0o750); err != nil {
		return err
	}
	if err := m.resume(); err != nil {
		return err
	}
	m.tell()
	var following sync.WaitGroup
	defer following.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	following.Go(func() { follow(ctx, m.settings.Client, m.settings.Namespace, m.stores) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.news:
			m.touch()
		case <-timer.C:
		}
		m.broken = ""
		if err := m.step(ctx); err != nil {
			m.broken = cut(err.Error())
		}
		m.tell()
		timer.Reset(m.rest())
	}
}

// touch notes that something has changed.
func (m *Mirror) touch() {
	m.last = time.Now()
	if m.first.IsZero() {
		m.first = m.last
	}
}

// idle is how long Run sleeps when nothing is due.
const idle = time.Second

// rest returns how long nothing is due.
func (m *Mirror) rest() time.Duration {
	wait := idle
	if !m.first.IsZero() {
		wait = min(wait, time.Until(m.due()))
	}
	if m.pending != nil {
		wait = min(wait, time.Until(m.pending.at))
	}
	if m.trial != nil {
		wait = min(wait, liveEvery, time.Until(m.trial.until))
	}
	return max(wait, time.Millisecond)
}

// due returns when a change is judged.
func (m *Mirror) due() time.Time {
	quiet, late := m.last.Add(m.settings.Quiet), m.first.Add(m.settings.Late)
	if late.Before(quiet) {
		return late
	}
	return quiet
}

// step does what is due.
func (m *Mirror) step(ctx context.Context) error {
	var errs []error
	if !m.first.IsZero() && !time.Now().Before(m.due()) && m.synced() {
		m.first = time.Time{}
		errs = append(errs, m.decide())
	}
	if m.pending != nil && !time.Now().Before(m.pending.at) {
		errs = append(errs, m.activate(ctx))
	}
	return errors.Join(append(errs, m.watchTrial(ctx))...)
}

// synced reports whether every resource has been listed: what has not been looks deleted.
func (m *Mirror) synced() bool {
	for _, s := range m.stores {
		s.mu.Lock()
		synced := s.synced
		s.mu.Unlock()
		if !synced {
			return false
		}
	}
	return true
}

// decide judges what the API has now, and makes it the pending generation.
func (m *Mirror) decide() error {
	wanted, confirmed := m.wanted()
	var hashes []string
	for _, o := range wanted {
		hashes = append(hashes, o.key, o.hash)
	}
	judging := sum(hashes...)
	if m.poison.Judging != judging {
		m.poison = poison{Judging: judging}
	}
	if m.crashed = m.poison.Ended >= maxEnded; m.crashed {
		return nil
	}
	m.poison.Ended++
	text, err := json.Marshal(m.poison)
	if err != nil {
		return err
	}
	if err := m.disk.replace(judgingFile, text); err != nil {
		return err
	}
	staged := &stage{mirror: m, path: m.disk.at(stageDirectory), written: map[string]bool{}}
	d := accept(wanted, m.accepted, m.rejected, staged.judge)
	m.poison = poison{}
	if err := errors.Join(staged.err, staged.clean(), ignoreMissing(os.Remove(m.disk.at(judgingFile)))); err != nil {
		return err
	}
	m.refused, m.rejected = d.refused, d.rejected
	if d.unjudged {
		m.touch() // once more, with those first that nobody got to
	}
	m.propose(&d, confirmed)
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// propose makes a decision the pending generation, unless it is what is served, has lost
// too much, or is quarantined.
func (m *Mirror) propose(d *decision, confirmed string) {
	g := generation{hash: hashOf(filesOf(d.objects)), objects: map[string]*object{}, summary: summarize(d.objects, d.compiled)}
	for _, o := range d.objects {
		g.objects[o.key] = o
	}
	m.held = nil
	switch {
	case m.serving != nil && g.hash == m.serving.hash:
		m.pending, m.accepted = nil, g.objects
		return
	case m.serving == nil && len(g.objects) == 0:
		return // there is nothing yet
	case m.isQuarantined(g.hash):
		m.pending, m.held = nil, &Next{Generation: g.hash, Quarantined: true}
		return
	}
	if confirmed == g.hash || m.settings.Confirm == g.hash {
		m.peaks = nil
	} else if m.serving != nil {
		if lost := m.lost(g.summary); len(lost) > 0 {
			m.settings.Logger.Error("generation is held back", "generation", g.hash, "lost", strings.Join(lost, ", "))
			m.pending, m.held = nil, &Next{Generation: g.hash, Lost: lost}
			return
		}
	}
	m.accepted = g.objects
	m.pending = &pending{g, m.when(d)}
}

// next is what Status says of the generation that is not served yet.
func (m *Mirror) next() *Next {
	if m.pending != nil {
		return &Next{Generation: m.pending.hash, At: m.pending.at.UTC()}
	}
	return m.held
}

// wanted returns what the API has, and the generation that its Registry confirms.
func (m *Mirror) wanted() (list []*object, confirmed string) {
	all := map[string]map[string]*item{}
	for _, s := range m.stores {
		s.mu.Lock()
		all[s.kind] = make(map[string]*item, len(s.items))
		for name, it := range s.items {
			all[s.kind][name] = it
		}
		s.mu.Unlock()
	}
	if r := all[registryKind][v1alpha1.RegistryName]; r != nil {
		confirmed = r.Annotations[v1alpha1.ConfirmShrinkAnnotation]
	}
	r := &resolver{secrets: all[secretKind], configMaps: all[configMapKind]}
	for kind, items := range all {
		for _, it := range items {
			if kind == secretKind || kind == registryKind || kind == configMapKind && it.Labels[manifest.SourceLabel] != "true" {
				continue
			}
			list = append(list, r.resolve(kind, it))
		}
	}
	slices.SortFunc(list, func(a, b *object) int { return cmp.Compare(a.key, b.key) })
	return list, confirmed
}
