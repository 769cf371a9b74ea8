// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"

	"github.com/admission-dispatcher/dispatcher/transport"
)

// trouble is what can be wrong with a Target, the worst first.
type trouble int

const (
	fine trouble = iota
	unresolved
	down
	recovering
	degraded
	failing
	notLookedUp
	openForClusters
)

// troubleOf returns what is worst about the Target, and the cause by which Targets are
// put together.
func troubleOf(t *Target) (is trouble, cause string) {
	if t.Unresolved != "" {
		return unresolved, ""
	}
	n, last := t.conditions()
	lost := n[transport.Ejected] + n[transport.Unreachable]
	switch all := len(t.Endpoints); {
	case lost == all && all > 0:
		return down, last
	case lost+n[transport.Recovering] == all && all > 0:
		return recovering, ""
	case lost > 0:
		return degraded, last
	case n[transport.Failing] > 0:
		return failing, last
	case n[transport.Recovering] > 0:
		return recovering, ""
	case t.LookupError != "":
		return notLookedUp, ""
	case slices.ContainsFunc(t.Endpoints, func(e Endpoint) bool { return e.OpenCount > 0 }):
		return openForClusters, ""
	}
	return fine, ""
}

// conditions counts the Endpoints by condition, and returns the cause of the last error.
func (t *Target) conditions() (n [transport.Conditions]int, cause string) {
	for i := range t.Endpoints {
		e := &t.Endpoints[i]
		for c := range transport.Condition(transport.Conditions) {
			if e.Condition == c.String() {
				n[c]++
			}
		}
		if e.LastError != nil && !e.Healthy() {
			cause = e.LastError.Cause
		}
	}
	return n, cause
}

// outage is Targets with the same trouble from the same cause, with those whom it concerns.
type outage struct {
	is       trouble
	cause    string
	targets  []*Target
	webhooks []*Webhook
	names    []string // of these, each once
	clusters []string
}

// outages returns what is wrong with Targets.
func (s *Status) outages() []*outage {
	type key struct {
		is    trouble
		cause string
	}
	found := map[key]*outage{}
	for i := range s.Targets {
		is, cause := troubleOf(&s.Targets[i])
		if is == fine {
			continue
		}
		k := key{is, cause}
		if found[k] == nil {
			found[k] = &outage{is: is, cause: cause}
		}
		found[k].targets = append(found[k].targets, &s.Targets[i])
	}
	list := make([]*outage, 0, len(found))
	for _, o := range found {
		s.concern(o)
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *outage) int {
		return cmp.Or(cmp.Compare(a.is, b.is), cmp.Compare(a.cause, b.cause))
	})
	return list
}

// concern fills in whom the outage concerns.
func (s *Status) concern(o *outage) {
	by, ids, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, t := range o.targets {
		by[t.ID] = true
	}
	for i := range s.Webhooks {
		if w := &s.Webhooks[i]; w.Target != "" && by[w.Target] {
			o.webhooks = append(o.webhooks, w)
			ids[w.ID], names[w.Label()] = true, true
		}
	}
	o.names = sortedKeys(names)
	calls := make([]bool, len(s.Chains))
	for i := range s.Chains {
		has := func(id string) bool { return ids[id] }
		calls[i] = slices.ContainsFunc(s.Chains[i].Mutating, has) || slices.ContainsFunc(s.Chains[i].Validating, has)
	}
	for i := range s.Clusters {
		if calls[s.Clusters[i].Chain] {
			o.clusters = append(o.clusters, s.Clusters[i].Name)
		}
	}
}
