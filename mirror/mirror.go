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
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// The defaults of Settings.
const (
	DefaultQuiet     = 100 * time.Millisecond
	DefaultLate      = 2 * time.Second
	DefaultSpread    = 20 * time.Second
	DefaultProbation = time.Minute
	DefaultPoll      = 30 * time.Second
)

// Settings are what a Mirror needs to know.
type Settings struct {
	Client    dynamic.Interface
	Namespace string // of Secrets and ConfigMaps
	Directory string
	// Cell is the cell whose Clusters are mirrored; "": all are.
	Cell string
	// Service is the namespace and name of the Service whose ready endpoints are the
	// replicas. Without a name nobody counts them.
	Service types.NamespacedName
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
	// Poll is how often the API of a workload cluster is asked that may have
	// configurations mirrored.
	Poll time.Duration
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
	replicas *replicas // nil: nobody counts them
	news     chan struct{}
	polling  sync.WaitGroup // of workloads

	// What follows belongs to the goroutine of Run.
	serving     *generation
	since       time.Time          // when it began to be served
	behind      time.Time          // since when that is not what was accepted; zero: it is
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
	decided     func(*Decision)      // nil: what is decided is published
	workloads   map[string]*workload // by cluster, of those that may have configurations mirrored

	first, last time.Time // when the change that is not judged yet began, and ended; zero: there is none
}

// pending is a generation that waits for its time.
type pending struct {
	generation
	at time.Time
}

// New returns a Mirror. It does nothing yet.
func New(s Settings) *Mirror {
	s.Quiet, s.Late, s.Probation = cmp.Or(s.Quiet, DefaultQuiet), cmp.Or(s.Late, DefaultLate), cmp.Or(s.Probation, DefaultProbation)
	s.Poll = cmp.Or(s.Poll, DefaultPoll)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Mirror{settings: s, disk: disk{s.Directory}, compiler: compile.NewCompiler(s.Compile), news: make(chan struct{}, 1),
		accepted: map[string]*object{}, rejected: map[string]string{}, workloads: map[string]*workload{}}
	for _, r := range resources() {
		m.stores = append(m.stores, &store{resource: r, changed: m.noteworthy, items: map[string]*item{}})
	}
	if s.Service.Name != "" {
		m.replicas = newReplicas(s.Service, m.disk)
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
	defer m.polling.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	following.Go(func() { follow(ctx, m.settings.Client, m.settings.Namespace, m.stores) })
	if m.replicas != nil {
		following.Go(func() { m.replicas.follow(ctx, m.settings.Client) })
	}
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
		errs = append(errs, m.decide(ctx))
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
