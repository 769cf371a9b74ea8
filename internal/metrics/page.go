// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
)

const pageHead = `# Metrics

Served at ` + "`/metrics`" + ` of the admin listener, as OpenMetrics with exemplars where the scraper asks for it. Generated from the code: ` + "`go test ./internal/metrics -run Page -update`" + `.

Every label has a closed set of values, or names from the configuration; nothing that a request brings becomes a label. A family keeps at most %d attribute sets: what is beyond
is counted in one series with ` + "`%s=\"true\"`" + `, so that sums stay right. Alert on it: it means that a family says less than it should.

With %d clusters and %d webhooks a process exports at most %d lines of its own where all is well, and at most %d when everything that can be counted has happened. Most of them are buckets of ` + "`dispatcher_request_duration_seconds`" + ` and ` + "`dispatcher_webhook_call_duration_seconds`" + `.
Counters and histograms keep the series of clusters and webhooks that have left the configuration until the process ends, because the OpenTelemetry SDK cannot forget one; they count towards the limit of their family. Gauges say what is now, and nothing else.

Histograms have the buckets %s (seconds). %s series say which endpoint is which: ` + "`target`" + ` is the webhook's URL, ` + "`endpoint`" + ` an address behind it.
Beside these there are the families of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `).

| family | type | unit | labels | meaning |
|---|---|---|---|---|
`

// Page returns docs/metrics.md.
func Page() string {
	var page strings.Builder
	bounds := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(buckets())), ", "), "[]")
	fmt.Fprintf(&page, pageHead, maxSeries, overflowLabel, seriesClusters, seriesWebhooks, SeriesWell, SeriesWorst, bounds, "`dispatcher_webhook_info`")
	for _, f := range Families() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", f.Prometheus(), f.Kind.Type(), f.unit(), f.labels(), f.Help)
	}
	return page.String()
}

func (f Family) unit() string {
	if f.Unit == "s" {
		return "seconds"
	}
	return strings.Trim(f.Unit, "{}")
}

func (f Family) labels() string {
	parts := make([]string, len(f.Labels))
	for i, l := range f.Labels {
		parts[i] = "`" + l.Name + "`"
		if l.Values != nil {
			parts[i] += " (" + strings.Join(l.Values, ", ") + ")"
		}
	}
	return strings.Join(parts, "; ")
}
