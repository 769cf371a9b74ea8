// SPDX-License-Identifier: Apache-2.0

// Package dashboards is the source of the Grafana dashboards beside it, and holds
// the alert rules. `go test ./dashboards -run Files -update` writes the JSON.
package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Dashboard is one page of Grafana.
type Dashboard struct {
	UID    string
	Title  string
	About  string
	Vars   []Variable
	Panels []Panel
}

// All returns the dashboards in the order in which one looks at them.
func All() []Dashboard {
	return []Dashboard{fleet(), cluster(), webhook(), runtime()}
}

// JSON returns the dashboard as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d.model()); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return out.Bytes(), nil
}

func (d Dashboard) model() object {
	return object{
		"uid":           d.UID,
		"title":         d.Title,
		"description":   d.About,
		"tags":          []string{tag},
		"schemaVersion": 39,
		"editable":      true,
		"refresh":       "30s",
		"time":          object{"from": "now-3h", "to": "now"},
		"graphTooltip":  1, // one cross-hair in all panels
		"templating":    object{"list": variables(d.Vars)},
		"links":         links(d.UID),
		"panels":        panels(d.Panels),
	}
}

// tag marks our dashboards.
const tag = "admission-dispatcher"

// object is a JSON object.
type object map[string]any

// links lead to the other dashboards, with time and variables kept.
func links(from string) []object {
	list := []object{}
	for _, name := range names() {
		if name.uid == from {
			continue
		}
		list = append(list, object{
			"type": "link", "title": name.title, "url": "/d/" + name.uid,
			"keepTime": true, "includeVars": true, "icon": "dashboard",
		})
	}
	return list
}

type name struct{ uid, title string }

// names are apart from All, which needs the links.
func names() []name {
	return []name{
		{fleetUID, fleetTitle}, {clusterUID, clusterTitle},
		{webhookUID, webhookTitle}, {runtimeUID, runtimeTitle},
	}
}
