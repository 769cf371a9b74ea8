// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// poison is what an API had while the mirror ended.
type poison struct {
	Judging string `json:"judging"` // a sum of it
	Ended   int    `json:"ended"`   // so many times
}

// maxEnded is how often the mirror may end while it judges the same: a process ends for
// other reasons, too.
const maxEnded = 3

// decide judges what the API has now, and makes it the pending generation.
func (m *Mirror) decide(ctx context.Context) error {
	wanted, confirmed := m.wanted()
	hashes := m.workloadHashes()
	for _, o := range wanted {
		hashes = append(hashes, o.key, o.hash)
	}
	judging := sum(hashes...)
	if m.poison.Judging != judging {
		m.poison = poison{Judging: judging}
	}
	if m.crashed = m.poison.Ended >= maxEnded; m.crashed {
		m.fallBehind()
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
	staged := newStage(m)
	d := accept(wanted, m.accepted, m.rejected, staged.judge)
	m.mirrorWorkloads(ctx, &d, staged.judge)
	m.poison = poison{}
	if err := errors.Join(staged.err, staged.clean(), ignoreMissing(os.Remove(m.disk.at(judgingFile)))); err != nil {
		return err
	}
	m.refused, m.rejected = d.refused, d.rejected
	if d.unjudged {
		m.touch() // once more, with those first that nobody got to
	}
	if m.decided != nil {
		m.accepted = byKey(d.objects)
		m.decided(decisionOf(wanted, &d))
		return nil
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
	all := slices.Concat(d.objects, d.mirrored)
	g := generation{hash: hashOf(filesOf(all)), objects: byKey(all), summary: summarize(d.objects, d.compiled)}
	m.held = nil
	switch {
	case m.serving != nil && g.hash == m.serving.hash:
		m.pending, m.accepted, m.behind = nil, g.objects, time.Time{}
		return
	case m.serving == nil && len(g.objects) == 0:
		return // there is nothing yet
	}
	m.fallBehind()
	if m.isQuarantined(g.hash) {
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

// fallBehind notes that what is served is not what was accepted.
func (m *Mirror) fallBehind() {
	if m.behind.IsZero() {
		m.behind = stamp()
	}
}

func byKey(objects []*object) map[string]*object {
	set := make(map[string]*object, len(objects))
	for _, o := range objects {
		set[o.key] = o
	}
	return set
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
			if !isIn(m.settings.Cell, kind, it) || kind == secretKind || kind == registryKind || kind == configMapKind && it.Labels[manifest.SourceLabel] != "true" {
				continue
			}
			o := r.resolve(kind, it)
			o.generation, o.attested = it.Generation, it.attested()
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *object) int { return cmp.Compare(a.key, b.key) })
	return list, confirmed
}
