// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/dashboards"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

var (
	// A metric of ours, of Go, of the process, or a recorded one, with its selector.
	metric = regexp.MustCompile(`\b((?:[a-z]+:)?(?:dispatcher|go|process)_[a-z0-9_]+(?::[a-z0-9_]+)?|up)\b(?:\{([^}]*)\})?`)
	// A selector without a name.
	nameless = regexp.MustCompile(`(?:^|[^a-z0-9_])\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`\w+`)
	// A line of the metrics endpoint.
	sample     = regexp.MustCompile(`(?m)^((?:go|process)_\w+)(?:\{([^}]*)\})?`)
	values     = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	annotation = regexp.MustCompile(`\$labels\.(\w+)`)
)

// schema says which labels a metric has; nil values of a label: any.
type schema map[string]map[string][]string

// TestQueries wants every metric and label of rules and panels to exist.
func TestQueries(t *testing.T) {
	known := newSchema(t)
	for _, r := range rules(t) {
		known.check(t, r.Alert+r.Record, r.Expr)
		for _, l := range annotation.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
			if !known.anyHas(r.Expr, l[1]) {
				t.Errorf("%s: nothing has the label %s that its text names", r.Alert, l[1])
			}
		}
	}
	for _, d := range dashboards.All() {
		for _, v := range d.Vars {
			q := values.FindStringSubmatch(v.Query)
			if q == nil {
				t.Fatalf("%s: variable %s asks %q", d.UID, v.Name, v.Query)
			}
			known.check(t, d.UID+" $"+v.Name, "count by ("+q[2]+") ("+q[1]+")")
		}
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				known.check(t, d.UID+", "+p.Title, q.Expr)
			}
		}
	}
}

// TestQueriesSeeMistakes keeps TestQueries honest.
func TestQueriesSeeMistakes(t *testing.T) {
	known := newSchema(t)
	for _, expr := range []string{
		`dispatcher_requests`, `rate(dispatcher_shed_total{webhook="w"}[5m])`,
		`sum by (pod) (rate(dispatcher_shed_total[5m]))`, `dispatcher_endpoints{state="opened"}`,
		`webhook:dispatcher_fail_open:rate1m`, `cluster:dispatcher_shed:rate5m{phase="mutate"}`,
		`dispatcher_request_duration_seconds{cluster="a"}`, `{pod="a"}`, `nothing_of_ours > 1`,
	} {
		if len(known.mistakes(expr)) == 0 {
			t.Errorf("%s: no mistake found", expr)
		}
	}
}

func newSchema(t *testing.T) schema {
	t.Helper()
	s := schema{"up": {}}
	s.addProcess(t)
	for _, f := range metrics.Families() {
		labels := map[string][]string{"otel_metric_overflow": {"true"}}
		for _, l := range f.Labels {
			labels[l.Name] = l.Values
		}
		s.add(f, labels)
	}
	for _, labels := range s {
		labels["job"], labels["instance"] = nil, nil // Prometheus adds them
	}
	for _, r := range rules(t) {
		if r.Record != "" {
			s[r.Record] = recorded(r.Expr)
		}
	}
	return s
}

// add makes a family known by the names of its series.
func (s schema) add(f metrics.Family, labels map[string][]string) {
	name := f.Prometheus()
	if f.Kind.Type() != "histogram" {
		s[name] = labels
		return
	}
	labels["le"] = nil
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		s[name+suffix] = labels
	}
}

// addProcess makes known what the Go runtime and the process export.
func (s schema) addProcess(t *testing.T) {
	t.Helper()
	m, err := metrics.New(metrics.Config{})
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, line := range sample.FindAllStringSubmatch(page.Body.String(), -1) {
		labels := map[string][]string{}
		for _, l := range matcher.FindAllStringSubmatch(line[2], -1) {
			labels[l[1]] = nil
		}
		s[line[1]] = labels
	}
}

// recorded returns the labels that an aggregation leaves.
func recorded(expr string) map[string][]string {
	labels := map[string][]string{}
	for _, name := range word.FindAllString(grouping.FindStringSubmatch(expr)[1], -1) {
		labels[name] = nil
	}
	if strings.HasPrefix(expr, "histogram_quantile(") {
		delete(labels, "le")
	}
	return labels
}

func (s schema) check(t *testing.T, where, expr string) {
	t.Helper()
	for _, m := range s.mistakes(expr) {
		t.Errorf("%s: %s, in %s", where, m, expr)
	}
}

// mistakes returns what an expression names that does not exist.
func (s schema) mistakes(expr string) []string {
	selectors := s.selectors(expr)
	if len(selectors) == 0 {
		return []string{"no metric"}
	}
	var all []string
	for _, sel := range selectors {
		if sel.labels == nil {
			all = append(all, "there is no metric "+sel.name)
			continue
		}
		all = append(all, sel.mistakes()...)
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, name := range word.FindAllString(g[1], -1) {
			if !s.anyHas(expr, name) {
				all = append(all, "no metric has the label "+name)
			}
		}
	}
	return all
}

// anyHas reports whether a metric of the expression has the label.
func (s schema) anyHas(expr, label string) bool {
	return slices.ContainsFunc(s.selectors(expr), func(sel selector) bool {
		_, ok := sel.labels[label]
		return ok
	})
}

// selector is what an expression asks for in one place.
type selector struct {
	name, matchers string
	labels         map[string][]string // nil: there is no such metric
}

func (s schema) selectors(expr string) []selector {
	var all []selector
	for _, m := range metric.FindAllStringSubmatch(expr, -1) {
		all = append(all, selector{m[1], m[2], s[m[1]]})
	}
	for _, m := range nameless.FindAllStringSubmatch(expr, -1) {
		labels := map[string][]string{"__name__": nil, "otel_metric_overflow": nil, "job": nil, "instance": nil}
		all = append(all, selector{"{}", m[1], labels})
	}
	return all
}

// mistakes returns the labels and values that the metric does not have.
func (s selector) mistakes() []string {
	var all []string
	for _, m := range matcher.FindAllStringSubmatch(s.matchers, -1) {
		label, operator, value := m[1], m[2], m[3]
		closed, ok := s.labels[label]
		switch {
		case !ok:
			all = append(all, s.name+" has no label "+label)
		case closed != nil && !strings.HasSuffix(operator, "~") && !slices.Contains(closed, value):
			all = append(all, s.name+": "+label+" is never "+value)
		}
	}
	return all
}
