// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"net/url"
	"slices"
	"strconv"
)

// Panel is one graph.
type Panel struct {
	Title   string
	About   string
	Unit    string // in Grafana's words
	Queries []Query
	Limit   Limit  // the zero value draws no threshold
	Traces  string // TraceQL for the link to traces; empty: no link
	Next    string // uid of the dashboard to go on with; empty: none
}

// Query is one PromQL expression with the legend of its series.
type Query struct {
	Expr   string
	Legend string
}

// Limit is the threshold that an alert has.
type Limit struct {
	Alert string
	Value float64
	Below bool // what is below Value is bad, not what is above
}

// The size of a panel in Grafana's grid, which is 24 wide.
const (
	panelWidth  = 12
	panelHeight = 8
	perRow      = 24 / panelWidth
)

func panels(list []Panel) []object {
	out := make([]object, 0, len(list))
	for i, p := range list {
		out = append(out, object{
			"id": i + 1, "type": "timeseries", "title": p.Title, "description": p.about(),
			"datasource": source(),
			"gridPos":    object{"x": i % perRow * panelWidth, "y": i / perRow * panelHeight, "w": panelWidth, "h": panelHeight},
			"targets":    p.targets(),
			"fieldConfig": object{
				"defaults":  object{"unit": p.Unit, "min": 0, "thresholds": p.Limit.steps(), "custom": p.Limit.style(), "links": p.links()},
				"overrides": []object{},
			},
			"options": object{
				"legend":  object{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}},
				"tooltip": object{"mode": "multi", "sort": "desc"},
			},
		})
	}
	return out
}

func (p Panel) about() string {
	if p.Limit.Alert == "" {
		return p.About
	}
	return p.About + " The line is the threshold of the alert " + p.Limit.Alert + "."
}

func (p Panel) targets() []object {
	list := make([]object, 0, len(p.Queries))
	for i, q := range p.Queries {
		list = append(list, object{
			"refId": string(rune('A' + i)), "datasource": source(),
			"expr": q.Expr, "legendFormat": q.Legend, "range": true, "exemplar": p.Traces != "",
		})
	}
	return list
}

// links are shown on a click on a series.
func (p Panel) links() []object {
	list := []object{}
	if p.Traces != "" {
		list = append(list, object{"title": "Traces", "url": explore(p.Traces), "targetBlank": true})
	}
	if i := slices.IndexFunc(names(), func(n name) bool { return n.uid == p.Next }); i >= 0 {
		list = append(list, object{
			"title": names()[i].title,
			"url":   "/d/" + p.Next + "?${__url_time_range}&${__all_variables}",
		})
	}
	return list
}

// explore returns the address of a search for traces in the panel's time range.
// Grafana replaces the variables, so their signs stay as they are.
func explore(query string) string {
	pane := `{"a":{"datasource":"${traces}","queries":[{"refId":"A","queryType":"traceql","query":` + strconv.Quote(query) +
		`}],"range":{"from":"${__from}","to":"${__to}"}}}`
	return "/explore?schemaVersion=1&panes=" + variableSigns().Replace(url.QueryEscape(pane))
}
