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
	healthy, recovering, all := 0, 0, len(t.Endpoints)
	for i := range t.Endpoints {
		switch e := &t.Endpoints[i]; {
		case e.Healthy():
			healthy++
		case e.Recovering():
			recovering++
		}
	}
	switch {
	case all == 0:
		return badge{"bad", "no address"}
	case healthy == all:
		return badge{"good", fmt.Sprintf("%d healthy", all)}
	case healthy+recovering == all:
		return badge{"warn", fmt.Sprintf("%d of %d recovering", recovering, all)}
	case healthy+recovering == 0:
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

// failures says how many of the attempts in the breaker's window failed.
func (r endpointRow) failures() string {
	if !r.Counted {
		return "–"
	}
	return fmt.Sprintf("%d of %d", r.Endpoint.Failures, r.Endpoint.Requests)
}

// endpointTable are the Endpoints of Targets.
type endpointTable struct {
	Now  time.Time
	Rows []endpointRow
}

func endpointsOf(now time.Time, targets ...status.Target) endpointTable {
	table := endpointTable{Now: now}
	for i := range targets {
		for _, e := range targets[i].Endpoints {
			table.Rows = append(table.Rows, newEndpointRow(&targets[i], e))
		}
	}
	return table
}

func newEndpointRow(t *status.Target, e status.Endpoint) endpointRow {
	row := endpointRow{Endpoint: e, URL: t.URL, State: badge{conditionClass[e.Condition], e.Condition}, Counted: e.Requests > 0}
	switch {
	case e.Healthy() && e.OpenCount > 0:
		row.State.Class, row.More = "warn", "not called for "+e.OpenFor()
	case e.State == "open" && !e.Until.IsZero():
		row.More = "tried again at " + e.Until.UTC().Format(time.TimeOnly)
	case e.Width > 0:
		row.More = status.Count(e.Width, "call") + " at a time"
	}
	return row
}

// conditionClass is how an Endpoint's condition looks.
var conditionClass = map[string]string{
	"healthy": "good", "untried": "idle", "recovering": "warn", "failing": "warn", "unreachable": "bad", "ejected": "bad",
}
