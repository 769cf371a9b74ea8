// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// overview is the first page.
type overview struct {
	page
	Filter                    status.Filter
	Health                    badge
	Notices                   []status.Notice
	Tiles                     []tile
	Webhooks                  webhookTable
	Endpoints                 endpointTable
	Denials, FailOpens, Sheds decisions
	Clusters                  []clusterRow
	Certificates              []certificateRow
}

func newOverview(s *status.Status, f status.Filter) *overview {
	index := indexOf(s)
	v := &overview{
		page:      newPage(s, "Status"),
		Filter:    f,
		Notices:   s.Notices,
		Webhooks:  index.table("Webhooks with their endpoints and latencies", index.all()),
		Endpoints: endpointsOf(s.Now, s.Targets...),
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
	for i := range notices {
		if notices[i].Critical() {
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

func severityBadge(n *status.Notice) badge {
	if n.Critical() {
		return badge{"bad", "Critical"}
	}
	return badge{"warn", "Warning"}
}

// nextBadge says why a Generation is not served.
func nextBadge(n *mirrorstatus.NextGeneration) badge {
	switch {
	case n.Quarantined:
		return badge{"bad", "quarantined"}
	case len(n.Lost) > 0:
		return badge{"bad", "held back"}
	}
	return badge{"warn", "pending"}
}

// servedWords is what a change that is served comes to.
func servedWords(c status.Change) string {
	text := status.Count(c.Webhooks, "webhook") + " for " + status.Count(c.Clusters, "cluster")
	if c.Pending > 0 {
		text += fmt.Sprintf(", %d pending", c.Pending)
	}
	return text
}

func overviewTiles(s *status.Status) []tile {
	healthy, recovering, endpoints, unresolved := 0, 0, 0, 0
	for i := range s.Targets {
		if s.Targets[i].Unresolved != "" {
			unresolved++
		}
		for j := range s.Targets[i].Endpoints {
			endpoints++
			switch e := &s.Targets[i].Endpoints[j]; {
			case e.Healthy():
				healthy++
			case e.Recovering():
				recovering++
			}
		}
	}
	var sum status.Counts
	for _, c := range s.Clusters {
		sum.Admissions += c.Counts.Admissions
		sum.Denied += c.Counts.Denied
		sum.FailedOpen += c.Counts.FailedOpen
		sum.DeniedUnavailable += c.Counts.DeniedUnavailable
		sum.Shed += c.Counts.Shed
		sum.Bypassed += c.Counts.Bypassed
	}
	health := tile{Name: "Endpoints healthy", Value: fmt.Sprintf("%d of %d", healthy, endpoints), More: "by their last attempt"}
	switch {
	case unresolved > 0:
		health.Class, health.More = "bad", status.Count(unresolved, "target")+" without an address"
	case healthy+recovering < endpoints:
		health.Class = "bad"
	case recovering > 0:
		health.Class, health.More = "warn", fmt.Sprintf("%d recovering", recovering)
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
		{Name: "Denied", Value: number(c.Denied), More: deniedMore(c)},
		{Name: "Failed open", Value: number(c.FailedOpen), More: share(c.FailedOpen, c.Admissions), Class: classIf(c.FailedOpen > 0, "warn")},
		{Name: "Shed", Value: number(c.Shed), More: share(c.Shed, c.Admissions), Class: classIf(c.Shed > 0, "warn")},
	}
}

// deniedMore says how many of the denials had a call that failed beside: nothing got in.
func deniedMore(c status.Counts) string {
	if c.DeniedUnavailable == 0 {
		return share(c.Denied, c.Admissions)
	}
	return fmt.Sprintf("%s, %s beside a failed call", share(c.Denied, c.Admissions), number(c.DeniedUnavailable))
}

func classIf(is bool, class string) string {
	if is {
		return class
	}
	return ""
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
