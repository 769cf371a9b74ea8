// SPDX-License-Identifier: Apache-2.0

package dashboards

import "strings"

// steps colours what is on the bad side of the limit red.
func (l Limit) steps() object {
	list := []object{{"color": "green", "value": nil}}
	switch {
	case l.Alert == "":
	case l.Below:
		list = []object{{"color": "red", "value": nil}, {"color": "green", "value": l.Value}}
	default:
		list = append(list, object{"color": "red", "value": l.Value})
	}
	return object{"mode": "absolute", "steps": list}
}

// style draws the limit as a line.
func (l Limit) style() object {
	mode := "off"
	if l.Alert != "" {
		mode = "line"
	}
	return object{"fillOpacity": 8, "showPoints": "never", "thresholdsStyle": object{"mode": mode}}
}

// variableSigns keeps ${name} readable for Grafana in an escaped address.
func variableSigns() *strings.Replacer {
	return strings.NewReplacer("%24%7B", "${", "%7D", "}", "%3A", ":", "+", "%20")
}
