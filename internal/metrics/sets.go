// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// attrs is a set of attributes, ready to be handed to an instrument without
// allocating.
type attrs struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newAttrs(kvs ...attribute.KeyValue) attrs {
	option := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return attrs{[]metric.AddOption{option}, []metric.RecordOption{option}}
}

const phases = 2

// clusterSets are the sets of a cluster.
type clusterSets struct {
	name    attribute.KeyValue
	decided [phases][dispatcher.Decisions]attrs
	in      [phases]attrs
}

func newClusterSets(c *chain.Cluster) *clusterSets {
	s := &clusterSets{name: attribute.String("cluster", c.Name)}
	for p := range s.decided {
		in := phaseAttr(chain.Phase(p))
		for d := range s.decided[p] {
			s.decided[p][d] = newAttrs(s.name, in, attribute.String("decision", dispatcher.Decision(d).String()))
		}
		s.in[p] = newAttrs(s.name, in)
	}
	return s
}

// webhookSets are the sets of a webhook, which has a part in one phase only.
type webhookSets struct {
	names    [2]attribute.KeyValue
	phase    attribute.KeyValue
	outcomes [dispatcher.Results]attrs
	dropped  attrs // in mode Shadow
	duration attrs
}

func newWebhookSets(w *chain.Entry, p chain.Phase) *webhookSets {
	configuration, name := attribute.String("configuration", w.Configuration), attribute.String("webhook", w.Name)
	s := &webhookSets{names: [2]attribute.KeyValue{configuration, name}, phase: phaseAttr(p)}
	for r := range s.outcomes {
		s.outcomes[r] = s.withOutcome(dispatcher.Result(r).String())
	}
	s.dropped = s.withOutcome(droppedShadow)
	s.duration = newAttrs(configuration, name, s.phase)
	return s
}

func (s *webhookSets) withOutcome(word string) attrs {
	return newAttrs(s.names[0], s.names[1], s.phase, attribute.String("outcome", word))
}

// callSets are the sets of a webhook whatever the phase.
type callSets struct {
	attempts [transport.Kinds]attrs
	plain    attrs
}

func newCallSets(w hook.ID) *callSets {
	configuration, name := attribute.String("configuration", w.Configuration), attribute.String("webhook", w.Name)
	s := &callSets{plain: newAttrs(configuration, name)}
	for k := range s.attempts {
		s.attempts[k] = newAttrs(configuration, name, attribute.String("kind", transport.Kind(k).String()))
	}
	return s
}

// byPhase returns the sets that have the phase alone.
func byPhase() [phases]attrs {
	var s [phases]attrs
	for p := range s {
		s[p] = newAttrs(phaseAttr(chain.Phase(p)))
	}
	return s
}

func phaseAttr(p chain.Phase) attribute.KeyValue { return attribute.String("phase", p.String()) }

// generation holds the sets of one Snapshot, by what they are of. They go with
// it, so that nothing of an old Snapshot is kept.
type generation struct {
	snapshot string
	clusters sync.Map // *registry.Cluster -> *clusterSets
	webhooks sync.Map // *registry.Webhook -> *webhookSets

	mu      sync.RWMutex
	callers map[hook.ID]*callSets
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

func (g *generation) cluster(c *chain.Cluster) *clusterSets {
	if known, ok := g.clusters.Load(c); ok {
		return known.(*clusterSets)
	}
	known, _ := g.clusters.LoadOrStore(c, newClusterSets(c))
	return known.(*clusterSets)
}

func (g *generation) webhook(w *chain.Entry, p chain.Phase) *webhookSets {
	if known, ok := g.webhooks.Load(w); ok {
		return known.(*webhookSets)
	}
	known, _ := g.webhooks.LoadOrStore(w, newWebhookSets(w, p))
	return known.(*webhookSets)
}

func (g *generation) caller(w hook.ID) *callSets {
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
			g.callers = map[hook.ID]*callSets{}
		}
		g.callers[w] = newCallSets(w)
	}
	return g.callers[w]
}
