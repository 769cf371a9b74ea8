// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"
)

// The files that outlive a crash.
const (
	markerFile     = "activating"  // a generation is on trial
	quarantineFile = "quarantined" // those that failed
	judgingFile    = "judging"     // what the mirror compiles now
)

// maxQuarantined is how many generations are remembered.
const maxQuarantined = 16

// trial is a generation that is served and has not proven itself yet.
type trial struct {
	Generation string `json:"generation"`
	// Before is the one that did; "": none has.
	Before string `json:"before"`

	until time.Time
	asked time.Time // when liveness was
	seen  bool      // the dispatcher was alive since
	fails int       // in a row
}

// Liveness: how often it is asked in a trial, and how many failures end it.
const (
	liveEvery   = 500 * time.Millisecond
	liveTimeout = 2 * time.Second
	liveFails   = 3
)

// when returns when a generation is to be served: after a random delay, so that not all
// replicas have it at once.
func (m *Mirror) when(d *decision) time.Time {
	now := time.Now()
	if m.serving == nil || m.settings.Spread <= 0 {
		return now
	}
	for _, o := range d.objects {
		if had := m.serving.objects[o.key]; o.urgent && (had == nil || had.hash != o.hash) {
			return now
		}
	}
	at := now.Add(rand.N(m.settings.Spread))
	if m.pending != nil && m.pending.at.Before(at) {
		return m.pending.at // a further change does not put off the one before
	}
	return at
}

// activate has the pending generation served, on trial.
func (m *Mirror) activate(ctx context.Context) error {
	p := m.pending
	g := &p.generation
	if err := m.disk.write(g); err != nil {
		return err
	}
	t := &trial{Generation: g.hash, until: time.Now().Add(m.settings.Probation)}
	if m.trial != nil && m.trial.Before != "" {
		t.Before = m.trial.Before
	} else if m.serving != nil {
		t.Before = m.serving.hash
	}
	t.seen = m.live(ctx) == nil
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	// First the marker: whatever crashes from here on is known at the next start.
	if err := m.disk.replace(markerFile, text); err != nil {
		return err
	}
	if err := m.disk.swap(g.hash); err != nil {
		return err
	}
	if m.serving != nil {
		m.peaks = append(m.peaks, peak{m.serving.summary, time.Now().Add(shrinkWindow)})
	}
	m.serving, m.since, m.behind, m.trial, m.pending = g, stamp(), time.Time{}, t, nil
	m.disk.clean(g.hash, t.Before)
	m.settings.Logger.Info("generation is served", "generation", g.hash, "objects", len(g.objects))
	return nil
}

func (m *Mirror) live(ctx context.Context) error {
	if m.settings.Live == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	return m.settings.Live(ctx)
}

// watchTrial asks whether the dispatcher is alive with the generation on trial, and ends
// the trial.
func (m *Mirror) watchTrial(ctx context.Context) error {
	t := m.trial
	if t == nil || time.Since(t.asked) < liveEvery && time.Now().Before(t.until) {
		return nil
	}
	t.asked = time.Now()
	switch err := m.live(ctx); {
	case err == nil:
		t.seen, t.fails = true, 0
	case ctx.Err() == nil && t.seen: // and not because the mirror ends
		if t.fails++; t.fails >= liveFails {
			return m.goBack("the dispatcher is not alive any more: " + cut(err.Error()))
		}
	}
	switch {
	case time.Now().Before(t.until) || t.fails > 0:
		return nil
	case !t.seen && t.Before != "":
		return m.goBack("the dispatcher has not been alive with it")
	case !t.seen:
		return nil // it may not have been started yet
	}
	m.trial = nil
	m.disk.clean(m.serving.hash)
	return os.Remove(m.disk.at(markerFile))
}

// goBack has the generation before the trial served again, and never again the one that
// was on trial.
func (m *Mirror) goBack(reason string) error {
	t := m.trial
	m.settings.Logger.Error("generation is quarantined", "generation", t.Generation, "reason", reason, "before", t.Before)
	before, broken := m.disk.read(t.Before)
	m.quarantined = append(m.quarantined, Quarantined{
		Generation: t.Generation, Since: time.Now().UTC().Truncate(time.Second), Reason: reason, Mirrored: newlyMirrored(m.serving, before),
	})
	m.quarantined = m.quarantined[max(0, len(m.quarantined)-maxQuarantined):]
	text, err := json.Marshal(m.quarantined)
	if err != nil {
		return err
	}
	if err := m.disk.replace(quarantineFile, text); err != nil {
		return err
	}
	if broken == nil {
		if err := m.disk.swap(t.Before); err != nil {
			return err
		}
		m.serving, m.since, m.accepted = before, stamp(), before.objects
	}
	m.trial, m.pending = nil, nil
	m.touch()
	return os.Remove(m.disk.at(markerFile))
}

// isQuarantined reports whether a generation is not to be served.
func (m *Mirror) isQuarantined(hash string) bool {
	for _, q := range m.quarantined {
		if q.Generation == hash {
			return true
		}
	}
	return false
}

// resume reads what an earlier process left.
func (m *Mirror) resume() error {
	if text, err := os.ReadFile(m.disk.at(quarantineFile)); err == nil {
		_ = json.Unmarshal(text, &m.quarantined) // one that is broken is lost
	}
	if text, err := os.ReadFile(m.disk.at(judgingFile)); err == nil {
		_ = json.Unmarshal(text, &m.poison)
	}
	if hash := m.disk.current(); hash != "" {
		g, err := m.disk.read(hash)
		if err != nil {
			m.settings.Logger.Error("the generation that is served cannot be read", "generation", hash, "error", err)
		} else {
			m.serving, m.since, m.accepted = g, m.disk.swapped(), g.objects
		}
	}
	text, err := os.ReadFile(m.disk.at(markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t := &trial{}
	if err != nil || json.Unmarshal(text, t) != nil || m.serving == nil || t.Generation != m.serving.hash {
		return os.Remove(m.disk.at(markerFile)) // the swap did not happen
	}
	m.trial = t
	if m.settings.Live == nil && t.Before != "" {
		return m.goBack("there was a crash while it was on trial")
	}
	t.until = time.Now().Add(m.settings.Probation) // the dispatcher may be well
	return nil
}
