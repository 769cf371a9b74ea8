// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

// tallies count the admissions of each cluster. Counting takes no lock: the table
// is replaced when a cluster is new, and never changed.
type tallies struct {
	growing sync.Mutex
	table   atomic.Pointer[map[string]*tally]
}

type tally struct{ admissions, denied, failedOpen, shed, bypassed, outdated, last, lastOutdated atomic.Int64 }

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
		Bypassed:   c.bypassed.Load(),
		Outdated:   c.outdated.Load(),
		Last:       time.Unix(0, c.last.Load()).UTC(),
	}
	if last := c.lastOutdated.Load(); last > 0 {
		counts.LastOutdated = time.Unix(0, last).UTC()
	}
	return counts
}
