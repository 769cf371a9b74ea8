// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what happens, and says what is, for those who scrape the
// process and for a collector that it pushes to.
package metrics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Kind is the kind of instrument behind a Family.
type Kind string

// The kinds. Observed ones are read when somebody scrapes, the others are
// recorded as things happen.
const (
	Counter         Kind = "counter"
	Histogram       Kind = "histogram"
	ObservedCounter Kind = "observed counter"
	ObservedGauge   Kind = "observed gauge"
)

// Type returns the type of the family's series in Prometheus.
func (k Kind) Type() string {
	switch k {
	case Counter, ObservedCounter:
		return "counter"
	case Histogram:
		return "histogram"
	}
	return "gauge"
}

// Family is a metric with all its series.
type Family struct {
	Name   string // as OpenTelemetry names it
	Kind   Kind
	Unit   string // UCUM
	Labels []Label
	Help   string
	// into is where the instrument goes that records; nil: it is read.
	into any
}

// Families returns every family that the process exports of its own, in the order
// of the documentation.
func Families() []Family { return new(instruments).families() }

// Prometheus returns the family's name on the metrics endpoint.
func (f Family) Prometheus() string {
	name := strings.ReplaceAll(f.Name, ".", "_")
	if f.Unit == "s" {
		name += "_seconds"
	}
	if f.Kind.Type() == "counter" {
		name += "_total"
	}
	return name
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

// bounds are those of the buckets of every histogram of durations, in seconds: from a
// millisecond to the longest that kube-apiserver waits. Nothing changes them.
var bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// overflow marks the series that takes what is beyond a family's limit, as OpenTelemetry
// has it; overflowLabel is its name on the metrics endpoint.
const (
	overflow      = "otel.metric.overflow"
	overflowLabel = "otel_metric_overflow"
)

// maxSeries bounds the attribute sets of one family. What is beyond goes to one
// series with overflowLabel, so that sums stay right.
const maxSeries = 10_000

// What a process exports at most of its own, in lines of the metrics endpoint, with
// seriesClusters clusters and seriesWebhooks webhooks, each with one address. A test
// holds the code to it, and the documentation says it.
const (
	seriesClusters = 100
	seriesWebhooks = 200
	// SeriesWell is where all is well: webhooks allow and deny.
	SeriesWell = 18_500
	// SeriesWorst is where everything that can be counted has happened.
	SeriesWorst = 58_500
)

// Label is one label of a Family. Its values are a closed set, or names from the
// configuration; never anything that a request brings.
type Label struct {
	Name   string
	Values []string // the closed set; nil: names from the configuration
}

func labels(list ...Label) []Label { return list }

func named(name string) Label { return Label{Name: name} }

func closed(name string, values ...string) Label { return Label{Name: name, Values: values} }

func cluster() Label       { return named("cluster") }
func configuration() Label { return named("configuration") }
func webhook() Label       { return named("webhook") }

func phase() Label { return enumerated[chain.Phase]("phase", phases) }

// decision is what an admission came to.
func decision() Label { return enumerated[dispatcher.Decision]("decision", dispatcher.Decisions) }

// outcome is what an invocation came to, in the words of dispatcher.Result.
func outcome() Label { return enumerated[dispatcher.Result]("outcome", dispatcher.Results) }

// shadowOutcome is what an invocation in mode Shadow would have come to: nothing
// softens it, and no other webhook's denial comes before it.
func shadowOutcome() Label {
	label := outcome()
	label.Values = slices.DeleteFunc(label.Values, func(word string) bool {
		return word == dispatcher.Softened.String() || word == dispatcher.Abandoned.String()
	})
	label.Values = append(label.Values, droppedShadow)
	return label
}

// droppedShadow is a Shadow call that was not made.
const droppedShadow = "dropped"

// kind is why an attempt was made.
func kind() Label { return enumerated[transport.Kind]("kind", transport.Kinds) }

// state is that of a circuit.
func state() Label { return closed("state", "closed", "half_open", "ramping", "open") }

// Whose a circuit is.
const (
	endpointCircuit = "endpoint"
	clusterCircuit  = "cluster"
	resourceCircuit = "resource"
)

// reason is why somebody was turned away.
func reason() Label { return closed("reason", server.Reasons()...) }

// cause is why there is no usable answer.
func cause() Label {
	var values []string
	for _, c := range hook.Causes() {
		values = append(values, string(c))
	}
	return closed("cause", values...)
}

// enumerated is a Label whose values are the names of the first n numbers.
func enumerated[T interface {
	~uint8
	fmt.Stringer
}](name string, n T) Label {
	var values []string
	for v := range n {
		values = append(values, v.String())
	}
	return closed(name, values...)
}

const pageHead = `# Metrics

Served at ` + "`/metrics`" + ` of the admin listener, as OpenMetrics with exemplars where the scraper asks for it. Generated from the code: ` + "`go test ./internal/metrics -run Page -update`" + `.

Every label has a closed set of values, or names from the configuration; nothing that a request brings becomes a label. A family keeps at most %d attribute sets: what is beyond
is counted in one series with ` + "`%s=\"true\"`" + `, so that sums stay right. Alert on it: it means that a family says less than it should.

With %d clusters and %d webhooks a process exports at most %d lines of its own where all is well, and at most %d when everything that can be counted has happened. Most of them are buckets of ` + "`dispatcher_request_duration_seconds`" + ` and ` + "`dispatcher_webhook_call_duration_seconds`" + `.
Counters and histograms keep the series of clusters and webhooks that have left the configuration until the process ends, so that no sum goes down; they count towards the limit of their family. Gauges say what is now, and nothing else.

Histograms have the buckets %s (seconds). %s series say which endpoint is which: ` + "`target`" + ` is the webhook's URL, ` + "`endpoint`" + ` an address behind it.
A policy and a plugin count beside the webhooks, in the families with ` + "`webhook`" + ` that need no address: of a policy ` + "`configuration`" + ` is its name and ` + "`webhook`" + ` that of the binding; of a plugin, the names of the object Plugin and of the plugin.
Beside these there are the families of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `).

| family | type | unit | labels | meaning |
|---|---|---|---|---|
`

// Page returns docs/metrics.md.
func Page() string {
	var page strings.Builder
	buckets := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(bounds)), ", "), "[]")
	fmt.Fprintf(&page, pageHead, maxSeries, overflowLabel, seriesClusters, seriesWebhooks, SeriesWell, SeriesWorst, buckets, "`dispatcher_webhook_info`")
	for _, f := range Families() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", f.Prometheus(), f.Kind.Type(), f.unit(), f.labels(), f.Help)
	}
	return page.String()
}
