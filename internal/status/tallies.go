// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// tallies count the admissions of each cluster. Counting takes no lock: the table
// is replaced when a cluster is new, and never changed.
type tallies struct {
	growing sync.Mutex
	table   atomic.Pointer[map[string]*tally]
}

type tally struct{ admissions, denied, failedOpen, unavailable, shed, bypassed, outdated, last, lastOutdated atomic.Int64 }

func (t *tallies) count(r *dispatcher.Record, s seen) {
	c := t.of(r.Cluster.Name)
	c.admissions.Add(1)
	c.last.Store(r.Start.UnixNano())
	if s.denial {
		c.denied.Add(1)
	}
	if s.failOpen {
		c.failedOpen.Add(1)
	}
	if s.unavailable {
		c.unavailable.Add(1)
	}
	if s.shed {
		c.shed.Add(1)
	}
	if r.Verdict.Bypass != "" {
		c.bypassed.Add(1)
	}
	if r.Outdated {
		c.outdated.Add(1)
		c.lastOutdated.Store(r.Start.UnixNano())
	}
}

func (t *tallies) find(cluster string) *tally {
	if table := t.table.Load(); table != nil {
		return (*table)[cluster]
	}
	return nil
}

func (t *tallies) of(cluster string) *tally {
	if c := t.find(cluster); c != nil {
		return c
	}
	t.growing.Lock()
	defer t.growing.Unlock()
	if c := t.find(cluster); c != nil {
		return c
	}
	next := map[string]*tally{cluster: {}}
	if table := t.table.Load(); table != nil {
		maps.Copy(next, *table)
	}
	t.table.Store(&next)
	return next[cluster]
}

// keep forgets clusters that are no longer there.
func (t *tallies) keep(there func(cluster string) bool) {
	t.growing.Lock()
	defer t.growing.Unlock()
	table := t.table.Load()
	if table == nil {
		return
	}
	next := maps.Clone(*table)
	maps.DeleteFunc(next, func(cluster string, _ *tally) bool { return !there(cluster) })
	t.table.Store(&next)
}

func (t *tallies) counts(cluster string) Counts {
	c := t.find(cluster)
	if c == nil {
		return Counts{}
	}
	counts := Counts{
		Admissions: c.admissions.Load(),
		Denied:     c.denied.Load(),
		FailedOpen: c.failedOpen.Load(),
		Shed:       c.shed.Load(),

		DeniedUnavailable: c.unavailable.Load(),

		Bypassed: c.bypassed.Load(),
		Outdated: c.outdated.Load(),
		Last:     time.Unix(0, c.last.Load()).UTC(),
	}
	if last := c.lastOutdated.Load(); last > 0 {
		counts.LastOutdated = time.Unix(0, last).UTC()
	}
	return counts
}

// ShadowCounts are the invocations of a webhook in mode Shadow since the start, by
// what they would have come to in mode Enforce: Denied, Refused and Failed would
// have blocked.
type ShadowCounts struct {
	Allowed    int64 `json:"allowed"`
	Denied     int64 `json:"denied"`
	Refused    int64 `json:"refused"`
	Failed     int64 `json:"failed"`
	FailedOpen int64 `json:"failedOpen"`
	Skipped    int64 `json:"skipped"`
	Dropped    int64 `json:"dropped"` // too many were under way
}

// shadows count them by webhook, whatever bindings make of it. The zero value is
// ready for use.
type shadows struct {
	mu     sync.Mutex
	counts map[registered]*ShadowCounts
}

// registered is a webhook by its names.
type registered struct {
	phase, configuration, name string
}

func (s *shadows) count(r *dispatcher.ShadowRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[registered]*ShadowCounts{}
	}
	key := registered{r.Phase.String(), r.Outcome.Webhook.Configuration, r.Outcome.Webhook.Name}
	if s.counts[key] == nil {
		s.counts[key] = &ShadowCounts{}
	}
	*s.counts[key].of(r)++
}

func (c *ShadowCounts) of(r *dispatcher.ShadowRecord) *int64 {
	if r.Dropped {
		return &c.Dropped
	}
	switch r.Outcome.Result {
	case dispatcher.Allowed:
		return &c.Allowed
	case dispatcher.Denied:
		return &c.Denied
	case dispatcher.Refused:
		return &c.Refused
	case dispatcher.Failed:
		return &c.Failed
	case dispatcher.FailedOpen:
		return &c.FailedOpen
	}
	return &c.Skipped
}

// into fills in the counts of the webhooks that are in mode Shadow.
func (s *shadows) into(all []Webhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		w := &all[i]
		if w.Mode != chain.Shadow.String() {
			continue
		}
		w.Shadow = &ShadowCounts{}
		if c := s.counts[registered{w.Phase, w.Configuration, w.Name}]; c != nil {
			*w.Shadow = *c
		}
	}
}

// keep forgets webhooks that are no longer there.
func (s *shadows) keep(there map[registered]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.counts, func(w registered, _ *ShadowCounts) bool { return !there[w] })
}

// registeredIn returns the webhooks of a Snapshot.
func registeredIn(s *registry.Snapshot) map[registered]bool {
	all, seen := map[registered]bool{}, map[*chain.Chain]bool{}
	for _, c := range s.Clusters {
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			chain := c.Chain(phase)
			if chain == nil || seen[chain] {
				continue
			}
			seen[chain] = true
			for _, w := range chain.Webhooks {
				all[registered{phase.String(), w.Configuration, w.Name}] = true
			}
		}
	}
	return all
}

// ObserveShadow implements dispatcher.ShadowObserver.
func (c *Collector) ObserveShadow(_ context.Context, r *dispatcher.ShadowRecord) { c.shadows.count(r) }
