// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

type clusterRow struct {
	status.Cluster
	Webhooks int
	State    badge
}

func newClusterRow(s *status.Status, c *status.Cluster) clusterRow {
	chain := s.Chains[c.Chain]
	return clusterRow{*c, len(chain.Mutating) + len(chain.Validating), namespaceBadge(c.Namespaces)}
}

func namespaceBadge(n *status.Namespaces) badge {
	switch {
	case n == nil:
		return badge{"idle", "by name only"}
	case n.Stale:
		return badge{"warn", "stale"}
	}
	return badge{"good", "watched"}
}

// objectsRow is a resource of which the cluster's objects are read.
type objectsRow struct {
	status.Objects
	State badge
	Size  string
}

func objectsRows(list []status.Objects) (rows []objectsRow) {
	for _, o := range list {
		state := badge{"good", "watched"}
		if o.Stale {
			state = badge{"warn", "stale"}
		}
		rows = append(rows, objectsRow{o, state, fmt.Sprintf("%.1f MiB", float64(o.Bytes)/(1<<20))})
	}
	return rows
}

// words says how much of it is known.
func (r objectsRow) words() string {
	text := fmt.Sprintf("%d cached, %s", r.Cached, r.Size)
	if r.Unkept != 0 {
		text += fmt.Sprintf(", %d not kept", r.Unkept)
	}
	if r.Partial {
		text += ", more not known"
	}
	return text + fmt.Sprintf(", %d asked for", r.LiveGets) + colon(r.Error)
}

func namespaceWords(n *status.Namespaces) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%d cached, %d asked for", n.Cached, n.LiveGets) + colon(n.Error)
}

func authorizerWords(a *status.Authorizer) string {
	if a == nil {
		return "not asked"
	}
	return fmt.Sprintf("%d answered, %d cached, %d failed, %d shed", a.Answered, a.Cached, a.Failed, a.Shed) + colon(a.Error)
}

// colon puts an error, if there is one, behind what it is about.
func colon(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}

// clusterView is the page of one cluster.
type clusterView struct {
	page
	Cluster                   status.Cluster
	NamespaceState            badge
	Objects                   []objectsRow
	Tiles                     []tile
	Mutating, Validating      webhookTable
	Denials, FailOpens, Sheds decisions
}

// newClusterView returns nil if there is no such cluster.
func newClusterView(s *status.Status, name string) *clusterView {
	at := slices.IndexFunc(s.Clusters, func(c status.Cluster) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	c := s.Clusters[at]
	index, chain := indexOf(s), s.Chains[c.Chain]
	of := func(list []status.Decision) []status.Decision {
		return kept(list, func(d *status.Decision) bool { return d.Cluster == name })
	}
	return &clusterView{
		page:           newPage(s, name),
		Cluster:        c,
		NamespaceState: namespaceBadge(c.Namespaces),
		Objects:        objectsRows(c.Objects),
		Tiles:          countTiles(c.Counts),
		Mutating:       index.table("Mutating webhooks of this cluster, in their order", chain.Mutating),
		Validating:     index.table("Validating webhooks of this cluster", chain.Validating),
		Denials:        newDecisions(s, "Denied admissions of this cluster", "None among the last.", of(s.Denials)),
		FailOpens:      newDecisions(s, "Fail-opens of this cluster", "None among the last.", of(s.FailOpens)),
		Sheds:          newDecisions(s, "Sheds of this cluster", "None among the last.", of(s.Sheds)),
	}
}

// kept returns those of list that are ok.
func kept(list []status.Decision, ok func(*status.Decision) bool) []status.Decision {
	var some []status.Decision
	for i := range list {
		if ok(&list[i]) {
			some = append(some, list[i])
		}
	}
	return some
}
