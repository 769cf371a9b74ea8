// SPDX-License-Identifier: Apache-2.0

package dashboards

// Variable is a choice at the top of a dashboard: values of a label.
type Variable struct {
	Name  string
	Query string // in Grafana's words: label_values(METRIC, LABEL)
}

func job() Variable {
	return Variable{"job", `label_values(dispatcher_build_info, job)`}
}

func instanceVariable() Variable {
	return Variable{"instance", `label_values(dispatcher_build_info{job=~"$job"}, instance)`}
}

func clusterVariable() Variable {
	return Variable{"cluster", `label_values(dispatcher_requests_total{job=~"$job"}, cluster)`}
}

func webhookVariable() Variable {
	return Variable{"webhook", `label_values(dispatcher_webhook_info{job=~"$job"}, webhook)`}
}

// source is the Prometheus that the dashboard was opened for.
func source() object {
	return object{"type": "prometheus", "uid": "${datasource}"}
}

// variables puts the sources of metrics and traces before the dashboard's own.
func variables(own []Variable) []object {
	list := []object{
		{"name": "datasource", "label": "metrics", "type": "datasource", "query": "prometheus"},
		{"name": "traces", "label": "traces", "type": "datasource", "query": "tempo"},
	}
	for _, v := range own {
		list = append(list, object{
			"name": v.Name, "label": v.Name, "type": "query", "datasource": source(),
			"query":   object{"query": v.Query, "refId": v.Name},
			"refresh": 2, // whenever the time range changes
			"sort":    1, "multi": true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		})
	}
	return list
}
