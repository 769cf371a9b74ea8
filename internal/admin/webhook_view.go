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
			State:   targetBadge(&target),
			Spark:   newSpark(x.status.Now, target.Samples),
		})
	}
	return t
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
	case e.Healthy():
	case e.State == "open":
		row.State.Class = "bad"
		if !e.Until.IsZero() {
			row.More = "tried again at " + e.Until.UTC().Format(time.TimeOnly)
		}
	case e.Width > 0:
		row.State.Class, row.More = "warn", status.Count(e.Width, "call")+" at a time"
	default:
		row.State.Class, row.More = "warn", "spared for "+joined(e.Resources)
	}
	return row
}

// webhookView is the page of one webhook: of all that bindings make of it.
type webhookView struct {
	page
	Configuration, Name string
	Pending             []status.Pending
	Variants            []variant
	Denials, FailOpens  decisions
}

// variant is one webhook as it is for some clusters.
type variant struct {
	Title                               string
	Webhook                             status.Webhook
	Target                              status.Target
	Endpoints                           []endpointRow
	Clusters                            []string
	Spark                               spark
	ModeWords, PolicyWords, EffectWords string
}

// newWebhookView returns nil if there is no such webhook, served or pending.
func newWebhookView(s *status.Status, configuration, name string) *webhookView {
	of := func(list []status.Decision) []status.Decision {
		return kept(list, func(d *status.Decision) bool {
			for _, w := range d.Webhooks {
				if w.Configuration == configuration && w.Webhook == name {
					return true
				}
			}
			return false
		})
	}
	v := &webhookView{
		page:          newPage(s, name),
		Configuration: configuration,
		Name:          name,
		Denials:       newDecisions(s, "Denials by this webhook", "None among the last.", of(s.Denials)),
		FailOpens:     newDecisions(s, "Fail-opens of this webhook", "None among the last.", of(s.FailOpens)),
	}
	for _, p := range s.Pending {
		if p.Webhook == configuration+"/"+name {
			v.Pending = append(v.Pending, p)
		}
	}
	index := indexOf(s)
	for i := range s.Webhooks {
		if w := &s.Webhooks[i]; w.Configuration == configuration && w.Name == name {
			v.Variants = append(v.Variants, index.variant(w))
		}
	}
	if len(v.Variants)+len(v.Pending) == 0 {
		return nil
	}
	if len(v.Variants) > 1 {
		for i := range v.Variants {
			v.Variants[i].Title = fmt.Sprintf("As it is for %s", status.Count(len(v.Variants[i].Clusters), "cluster"))
		}
	}
	return v
}

func (x *index) variant(w *status.Webhook) variant {
	t := x.target(w)
	return variant{
		Title:       "What is sent to it",
		Webhook:     *w,
		Target:      t,
		Endpoints:   endpointRows([]status.Target{t}),
		Clusters:    x.clustersOf(w.ID),
		Spark:       newSpark(x.status.Now, t.Samples),
		ModeWords:   modeWords[w.Mode],
		PolicyWords: policyWords(w),
		EffectWords: effectWords[w.SideEffects],
	}
}

func (x *index) clustersOf(id string) []string {
	var names []string
	for _, c := range x.status.Clusters {
		chain := x.status.Chains[c.Chain]
		if contains(chain.Mutating, id) || contains(chain.Validating, id) {
			names = append(names, c.Name)
		}
	}
	return names
}

var modeWords = map[string]string{
	"Enforce": "its denial denies",
	"Warn":    "its denial becomes a warning",
	"Shadow":  "it is called and recorded, and never decides",
}

var effectWords = map[string]string{
	"None":         "it may be asked more than once",
	"NoneOnDryRun": "it may be asked more than once on a dry run only",
	"Some":         "it is asked once, and never on a dry run",
	"Unknown":      "it is asked once, and never on a dry run",
}

func policyWords(w *status.Webhook) string {
	switch {
	case w.FailurePolicy == "Ignore":
		return "the admission goes on without it, with a warning"
	case w.Retry:
		return "it is asked again, and if that does not help the admission is denied"
	}
	return "the admission is denied"
}
