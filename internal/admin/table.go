// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// index finds webhooks and Targets of one Status by their IDs.
type index struct {
	status   *status.Status
	webhooks map[string]*status.Webhook
	targets  map[string]*status.Target
}

func indexOf(s *status.Status) *index {
	x := &index{status: s, webhooks: map[string]*status.Webhook{}, targets: map[string]*status.Target{}}
	for i := range s.Webhooks {
		x.webhooks[s.Webhooks[i].ID] = &s.Webhooks[i]
	}
	for i := range s.Targets {
		x.targets[s.Targets[i].ID] = &s.Targets[i]
	}
	return x
}

func (x *index) all() []string {
	ids := make([]string, len(x.status.Webhooks))
	for i := range x.status.Webhooks {
		ids[i] = x.status.Webhooks[i].ID
	}
	return ids
}

// target returns the webhook's Target, which is empty if it is not there.
func (x *index) target(w *status.Webhook) status.Target {
	if t := x.targets[w.Target]; t != nil {
		return *t
	}
	return status.Target{}
}

type webhookTable struct {
	Caption string
	Rows    []webhookRow
}

type webhookRow struct {
	Name, Link string
	Webhook    status.Webhook
	Target     status.Target
	State      badge
	Spark      spark
}

func (x *index) table(caption string, ids []string) webhookTable {
	t := webhookTable{Caption: caption}
	for _, id := range ids {
		w := x.webhooks[id]
		if w == nil {
			continue
		}
		target := x.target(w)
		t.Rows = append(t.Rows, webhookRow{
			Name:    w.Name,
			Link:    webhookLink(w.Configuration, w.Name),
			Webhook: *w,
			Target:  target,
			State:   servedBadge(w, &target),
			Spark:   newSpark(x.status.Now, target.Samples),
		})
	}
	return t
}

// servedBadge says how the webhook is served.
func servedBadge(w *status.Webhook, t *status.Target) badge {
	if w.Target == "" {
		return badge{"good", "in process"}
	}
	return targetBadge(t)
}

// targetBadge says how many of a Target's Endpoints are healthy.
func targetBadge(t *status.Target) badge {
	healthy, all := 0, len(t.Endpoints)
	for i := range t.Endpoints {
		if t.Endpoints[i].Healthy() {
			healthy++
		}
	}
	switch {
	case all == 0:
		return badge{"bad", "none"}
	case healthy == all:
		return badge{"good", fmt.Sprintf("%d healthy", all)}
	case healthy == 0:
		return badge{"bad", fmt.Sprintf("0 of %d healthy", all)}
	}
	return badge{"warn", fmt.Sprintf("%d of %d healthy", healthy, all)}
}

type endpointRow struct {
	Endpoint status.Endpoint
	URL      string
	State    badge
	More     string
	Counted  bool
}

func endpointRows(targets []status.Target) []endpointRow {
	var rows []endpointRow
	for i := range targets {
		for _, e := range targets[i].Endpoints {
			rows = append(rows, newEndpointRow(&targets[i], e))
		}
	}
	return rows
}

func newEndpointRow(t *status.Target, e status.Endpoint) endpointRow {
	row := endpointRow{Endpoint: e, URL: t.URL, State: badge{"good", e.State}, Counted: e.Requests > 0}
	switch {
	case e.Healthy() && e.OpenCount > 0:
		row.State.Class, row.More = "warn", "not called for "+e.OpenFor()
	case e.Healthy():
	case e.State == "open":
		row.State.Class = "bad"
		if !e.Until.IsZero() {
			row.More = "tried again at " + e.Until.UTC().Format(time.TimeOnly)
		}
	case e.Width > 0:
		row.State.Class, row.More = "warn", status.Count(e.Width, "call")+" at a time"
	}
	return row
}
