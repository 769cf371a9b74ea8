// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/throttle"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const (
	looksAtOnce  = 16
	lookSpread   = 20 * time.Millisecond // between the beginnings of two looks
	lookInterval = 2 * time.Second       // between two rounds
	longestLook  = time.Minute           // between two looks at a Target that does not answer
	lookLines    = 20                    // of Targets that do not answer, in each throttle.Window
)

// lookout probes the Targets that nobody has reached since the process started, so that
// the status, the metrics and the log say what the first calls would meet. A Target takes
// part whatever comes of it, and its breakers learn nothing: a restart must never switch a
// policy off.
type lookout struct {
	targets func() []*transport.Target
	probe   func(*transport.Target) error
	log     *slog.Logger

	lines throttle.Throttle
	tried map[*transport.Target]*tried // those that have not answered
}

// tried is how a Target has fared so far.
type tried struct {
	next  time.Time
	pause time.Duration
	said  bool // that it does not answer
}

func (p *parts) lookout() *lookout {
	return &lookout{
		targets: p.registry.Targets,
		probe:   func(t *transport.Target) error { return p.client.Probe(t, probeTimeout) },
		log:     p.log,
		lines:   throttle.Throttle{Burst: lookLines},
		tried:   map[*transport.Target]*tried{},
	}
}

// run looks until ctx is done.
func (l *lookout) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-timer.C:
			l.round(ctx, now)
			timer.Reset(lookInterval)
		}
	}
}

// found is what a look has come to.
type found struct {
	target *transport.Target
	err    error
}

// round looks at each Target whose turn it is, a few at a time, in no order.
func (l *lookout) round(ctx context.Context, now time.Time) {
	due := l.due(now)
	results := make(chan found, len(due))
	slots, spread := make(chan struct{}, looksAtOnce), time.NewTicker(lookSpread)
	defer spread.Stop()
	var looking sync.WaitGroup
	for _, t := range due {
		select {
		case <-ctx.Done():
		case slots <- struct{}{}:
			looking.Go(func() {
				defer func() { <-slots }()
				results <- found{t, l.probe(t)}
			})
		}
		select {
		case <-ctx.Done():
		case <-spread.C:
		}
	}
	looking.Wait()
	close(results)
	for f := range results {
		l.note(f, now)
	}
}

// due returns the Targets whose turn it is, and forgets those that are gone or that calls
// have reached meanwhile.
func (l *lookout) due(now time.Time) []*transport.Target {
	before := l.tried
	l.tried = map[*transport.Target]*tried{}
	var due []*transport.Target
	for _, t := range l.targets() {
		known := before[t]
		switch {
		case isReached(t):
			if known != nil && known.said {
				l.answers(t)
			}
			continue
		case known == nil:
			known = &tried{pause: lookInterval}
		}
		l.tried[t] = known
		if !now.Before(known.next) {
			due = append(due, t)
		}
	}
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	return due
}

// isReached reports whether an Endpoint of the Target has ever answered.
func isReached(t *transport.Target) bool {
	for _, e := range t.Endpoints() {
		if !e.Answered().IsZero() {
			return true
		}
	}
	return false
}

func (l *lookout) note(f found, now time.Time) {
	t := l.tried[f.target]
	if f.err == nil {
		delete(l.tried, f.target)
		if t.said {
			l.answers(f.target)
		}
		return
	}
	t.next, t.pause = now.Add(t.pause), min(2*t.pause, longestLook)
	if t.said {
		return
	}
	if leftOut, ok := l.lines.Pass(now); ok {
		t.said = true
		l.log.Warn("webhook target does not answer", "url", f.target.URL(), "reason", f.err.Error(), "left_out", leftOut)
	}
}

func (l *lookout) answers(t *transport.Target) {
	l.log.Info("webhook target answers", "url", t.URL())
}
