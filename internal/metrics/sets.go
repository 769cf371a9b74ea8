// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const phases = 2

// clusterSets are the series of a cluster.
type clusterSets struct {
	name    attribute.KeyValue
	decided [phases][dispatcher.Decisions]decidedSets
}

type decidedSets struct {
	requests *counter
	duration histogram
}

func newClusterSets(m *Metrics, c *chain.Cluster) *clusterSets {
	s := &clusterSets{name: attribute.String("cluster", c.Name)}
	for p := range s.decided {
		for d := range s.decided[p] {
			labels := []attribute.KeyValue{s.name, phaseAttr(chain.Phase(p)), attribute.String("decision", dispatcher.Decision(d).String())}
			s.decided[p][d] = decidedSets{m.requests.with(labels...), m.duration.with(labels...)}
		}
	}
	return s
}

// webhookSets are the series of a webhook, which has a part in one phase only.
type webhookSets struct {
	names    [2]attribute.KeyValue
	phase    attribute.KeyValue
	calls    [dispatcher.Results]*counter
	patched  *counter
	duration histogram
}

func newWebhookSets(m *Metrics, w *chain.Entry, p chain.Phase) *webhookSets {
	s := &webhookSets{names: [2]attribute.KeyValue(names(w.ID)), phase: phaseAttr(p)}
	for r := range s.calls {
		s.calls[r] = m.calls.with(s.names[0], s.names[1], s.phase, attribute.String("outcome", dispatcher.Result(r).String()))
	}
	s.patched, s.duration = m.operation.with(s.names[:]...), m.call.with(s.names[0], s.names[1], s.phase)
	return s
}

// attemptSets are the series of a webhook's attempts, by kind.
type attemptSets [transport.Kinds]*counter

func newAttemptSets(m *Metrics, w hook.ID) *attemptSets {
	s := &attemptSets{}
	for k := range s {
		s[k] = m.attempts.with(append(names(w), attribute.String("kind", transport.Kind(k).String()))...)
	}
	return s
}

// names are the labels that name a webhook.
func names(w hook.ID) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("configuration", w.Configuration), attribute.String("webhook", w.Name)}
}

func phaseAttr(p chain.Phase) attribute.KeyValue { return attribute.String("phase", p.String()) }

// generation holds the sets of one Snapshot, by what they are of. They go with
// it, so that nothing of an old Snapshot is kept.
type generation struct {
	snapshot string
	clusters sync.Map // *chain.Cluster -> *clusterSets
	webhooks sync.Map // *chain.Entry -> *webhookSets

	mu      sync.RWMutex
	callers map[hook.ID]*attemptSets
}

// sets holds the generations of the Snapshot that is served and of the one
// before, which has admissions left.
type sets struct {
	alive atomic.Pointer[[2]*generation]
}

func newSets() *sets {
	s := &sets{}
	s.alive.Store(&[2]*generation{{}, {}})
	return s
}

// of returns the generation of a Snapshot.
func (s *sets) of(snapshot string) *generation {
	alive := s.alive.Load()
	for _, g := range alive {
		if g.snapshot == snapshot {
			return g
		}
	}
	fresh := &generation{snapshot: snapshot}
	s.alive.CompareAndSwap(alive, &[2]*generation{fresh, alive[0]}) // else another one did it
	return fresh
}

// newest returns the generation of the Snapshot that was seen last.
func (s *sets) newest() *generation { return s.alive.Load()[0] }

func (g *generation) cluster(m *Metrics, c *chain.Cluster) *clusterSets {
	if known, ok := g.clusters.Load(c); ok {
		return known.(*clusterSets)
	}
	known, _ := g.clusters.LoadOrStore(c, newClusterSets(m, c))
	return known.(*clusterSets)
}

func (g *generation) webhook(m *Metrics, w *chain.Entry, p chain.Phase) *webhookSets {
	if known, ok := g.webhooks.Load(w); ok {
		return known.(*webhookSets)
	}
	known, _ := g.webhooks.LoadOrStore(w, newWebhookSets(m, w, p))
	return known.(*webhookSets)
}

func (g *generation) caller(m *Metrics, w hook.ID) *attemptSets {
	g.mu.RLock()
	known := g.callers[w]
	g.mu.RUnlock()
	if known != nil {
		return known
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.callers[w] == nil {
		if g.callers == nil {
			g.callers = map[hook.ID]*attemptSets{}
		}
		g.callers[w] = newAttemptSets(m, w)
	}
	return g.callers[w]
}
