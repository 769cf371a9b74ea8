// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// page is what every page has.
type page struct {
	Title    string
	Status   *status.Status
	Sections []section
}

type section struct{ Anchor, Name string }

func newPage(s *status.Status, title string) page {
	return page{Title: title, Status: s, Sections: []section{
		{"webhooks", "Webhooks"}, {"endpoints", "Endpoints"}, {"failopens", "Fail-opens"}, {"denials", "Denials"},
		{"clusters", "Clusters"}, {"history", "History"}, {"certificates", "Certificates"},
	}}
}

// tile is one number in large type.
type tile struct{ Name, Value, More, Class string }

// decisions is a list of them with what it says when it is empty.
type decisions struct {
	Caption, Empty string
	Now            time.Time
	Rows           []status.Decision
}

func newDecisions(s *status.Status, caption, empty string, rows []status.Decision) decisions {
	return decisions{Caption: caption, Empty: empty, Now: s.Now, Rows: rows}
}

// absent is the page of what is not there.
type absent struct {
	page
	What string
}

func newAbsent(s *status.Status, what string) absent { return absent{newPage(s, "not here"), what} }

// overview is the first page.
type overview struct {
	page
	Health                    badge
	Notices                   []status.Notice
	Tiles                     []tile
	Webhooks                  webhookTable
	Endpoints                 []endpointRow
	Denials, FailOpens, Sheds decisions
	Clusters                  []clusterRow
	Certificates              []certificateRow
}

func newOverview(s *status.Status) *overview {
	index := indexOf(s)
	v := &overview{
		page:      newPage(s, "Status"),
		Notices:   s.Notices(),
		Webhooks:  index.table("Webhooks with their endpoints and latencies", index.all()),
		Endpoints: endpointRows(s.Targets),
		Denials:   newDecisions(s, "Denied admissions, the newest first", "None since the start.", s.Denials),
		FailOpens: newDecisions(s, "Admissions in which a webhook had no say, the newest first", "None since the start.", s.FailOpens),
		Sheds:     newDecisions(s, "Calls that were not made for want of room, the newest first", "None since the start.", s.Sheds),
	}
	v.Health = healthOf(s, v.Notices)
	v.Tiles = overviewTiles(s)
	for i := range s.Clusters {
		v.Clusters = append(v.Clusters, newClusterRow(s, &s.Clusters[i]))
	}
	for i := range s.Certificates {
		v.Certificates = append(v.Certificates, newCertificateRow(s.Now, &s.Certificates[i]))
	}
	return v
}

// healthOf sums it up in a line.
func healthOf(s *status.Status, notices []status.Notice) badge {
	critical := 0
	for _, n := range notices {
		if n.Critical {
			critical++
		}
	}
	switch {
	case !s.Ready:
		return badge{"bad", "Not ready"}
	case critical > 0:
		return badge{"bad", "Ready, with " + status.Count(critical, "critical notice")}
	case len(notices) > 0:
		return badge{"warn", "Ready, with " + status.Count(len(notices), "warning")}
	}
	return badge{"good", "Ready, all is well"}
}

func overviewTiles(s *status.Status) []tile {
	healthy, endpoints := 0, 0
	for i := range s.Targets {
		for j := range s.Targets[i].Endpoints {
			endpoints++
			if s.Targets[i].Endpoints[j].Healthy() {
				healthy++
			}
		}
	}
	var sum status.Counts
	for _, c := range s.Clusters {
		sum.Admissions += c.Counts.Admissions
		sum.Denied += c.Counts.Denied
		sum.FailedOpen += c.Counts.FailedOpen
		sum.Shed += c.Counts.Shed
		sum.Bypassed += c.Counts.Bypassed
	}
	health := tile{Name: "Endpoints healthy", Value: fmt.Sprintf("%d of %d", healthy, endpoints), More: "by their breakers"}
	if healthy < endpoints {
		health.Class = "bad"
	}
	return append([]tile{
		{Name: "Clusters", Value: number(int64(len(s.Clusters))), More: "callers"},
		{Name: "Webhooks", Value: number(int64(s.Registered())), More: fmt.Sprintf("%d pending", len(s.Pending))},
		health,
	}, countTiles(sum)...)
}

func countTiles(c status.Counts) []tile {
	return []tile{
		{Name: "Admissions", Value: number(c.Admissions), More: number(c.Bypassed) + " bypassed"},
		{Name: "Denied", Value: number(c.Denied), More: share(c.Denied, c.Admissions)},
		{Name: "Failed open", Value: number(c.FailedOpen), More: share(c.FailedOpen, c.Admissions), Class: classIf(c.FailedOpen > 0, "warn")},
		{Name: "Shed", Value: number(c.Shed), More: share(c.Shed, c.Admissions), Class: classIf(c.Shed > 0, "warn")},
	}
}

func classIf(is bool, class string) string {
	if is {
		return class
	}
	return ""
}

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

type certificateRow struct {
	status.Certificate
	State badge
}

// shortLife is how long before its end a certificate is worth a look.
const shortLife = 30 * 24 * time.Hour

func newCertificateRow(now time.Time, c *status.Certificate) certificateRow {
	row := certificateRow{*c, badge{"good", inFuture(c.NotAfter.Sub(now))}}
	switch {
	case c.Refused != "":
		row.State = badge{"bad", "new files refused"}
	case now.After(c.NotAfter):
		row.State = badge{"bad", "expired"}
	case now.Add(shortLife).After(c.NotAfter):
		row.State.Class = "warn"
	}
	return row
}

// clusterView is the page of one cluster.
type clusterView struct {
	page
	Cluster                   status.Cluster
	NamespaceState            badge
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
