// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// catalog is the webhooks of a Snapshot, each once, and the lists of them that
// clusters share: a thousand clusters with the same webhooks cost one list.
type catalog struct {
	webhooks []Webhook
	chains   []Chain

	ids    map[*chain.Entry]string
	named  map[string]int // how many variants there are
	places map[[2]*chain.Chain]int
}

func catalogOf(s *registry.Snapshot) *catalog {
	c := &catalog{
		webhooks: []Webhook{},
		chains:   []Chain{},
		ids:      map[*chain.Entry]string{},
		named:    map[string]int{},
		places:   map[[2]*chain.Chain]int{},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Clusters)) {
		c.place(s.Clusters[name])
	}
	return c
}

// place returns the index of the cluster's Chain.
func (c *catalog) place(cluster *chain.Cluster) int {
	key := [2]*chain.Chain{cluster.Mutating, cluster.Validating}
	if i, known := c.places[key]; known {
		return i
	}
	c.places[key] = len(c.chains)
	c.chains = append(c.chains, Chain{
		Mutating:   c.list(cluster.Mutating, chain.Mutating),
		Validating: c.list(cluster.Validating, chain.Validating),
	})
	return c.places[key]
}

func (c *catalog) list(chain *chain.Chain, p chain.Phase) []string {
	ids := []string{}
	if chain == nil {
		return ids
	}
	for _, w := range chain.Webhooks {
		ids = append(ids, c.id(w, p))
	}
	return ids
}

// id returns the webhook's ID: its name, with a number if bindings make several
// of it.
func (c *catalog) id(w *chain.Entry, p chain.Phase) string {
	if id, known := c.ids[w]; known {
		return id
	}
	id := p.String() + "/" + w.Configuration + "/" + w.Name
	c.named[id]++
	if n := c.named[id]; n > 1 {
		id = fmt.Sprintf("%s@%d", id, n)
	}
	v := newWebhook(w, p)
	v.ID = id
	c.ids[w] = id
	c.webhooks = append(c.webhooks, v)
	return id
}

// shownIdentity is how much of a Target's identity is shown, in hex digits.
const shownIdentity = 12

// targetID returns what is shown of a Target's identity; nothing where there is none.
func targetID(identity string) string { return identity[:min(len(identity), shownIdentity)] }
