// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/dashboards"
)

const (
	runbooks   = "../docs/runbooks/"
	runbookURL = "https://github.com/admission-dispatcher/dispatcher/blob/main/docs/runbooks/"
)

// rule is an alert or a recording rule, as far as the tests look.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, file := range files(t, "rules/*.yaml") {
		var content struct{ Groups []struct{ Rules []rule } }
		if err := yaml.Unmarshal([]byte(read(t, file)), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range content.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// files returns the names that fit, and wants some.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func alerts(t *testing.T) map[string]rule {
	t.Helper()
	byName := map[string]rule{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if _, twice := byName[r.Alert]; twice {
			t.Errorf("alert %s stands twice", r.Alert)
		}
		byName[r.Alert] = r
	}
	return byName
}

// TestAlerts wants of each alert what somebody who is woken by it needs.
func TestAlerts(t *testing.T) {
	for name, r := range alerts(t) {
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", name, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s: lacks a summary, a description or for", name)
		}
		if got := r.Annotations["runbook_url"]; got != runbookURL+name+".md" {
			t.Errorf("%s: runbook_url %q", name, got)
		}
		text := read(t, runbooks+name+".md")
		for _, part := range []string{
			"# " + name + "\n", "Severity " + r.Labels["severity"] + ", after " + r.For + ".",
			"## What it means", "## How to see it", "## What to do",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%s.md does not say %q", name, part)
			}
		}
	}
}

// TestRunbooks wants no runbook without an alert, and no link into nothing.
func TestRunbooks(t *testing.T) {
	known := alerts(t)
	link := regexp.MustCompile(`\]\((\w+)\.md\)`)
	for _, file := range files(t, runbooks+"*.md") {
		if _, ok := known[strings.TrimSuffix(filepath.Base(file), ".md")]; !ok {
			t.Errorf("%s: there is no such alert", file)
		}
		for _, l := range link.FindAllStringSubmatch(read(t, file), -1) {
			if _, ok := known[l[1]]; !ok {
				t.Errorf("%s leads to %s, which is no alert", file, l[1])
			}
		}
	}
}

// threshold is the comparison that ends an alert's expression.
var threshold = regexp.MustCompile(`([<>]) ([0-9.]+)$`)

// TestThresholds wants the line in a panel where the alert is.
func TestThresholds(t *testing.T) {
	known := alerts(t)
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			if p.Limit.Alert == "" {
				continue
			}
			got := threshold.FindStringSubmatch(known[p.Limit.Alert].Expr)
			if got == nil {
				t.Errorf("%s, %s: alert %s does not end in a threshold", d.UID, p.Title, p.Limit.Alert)
				continue
			}
			if value, err := strconv.ParseFloat(got[2], 64); err != nil || cmp.Compare(value, p.Limit.Value) != 0 || (got[1] == "<") != p.Limit.Below {
				t.Errorf("%s, %s: threshold %v (below: %v), alert %s says %s", d.UID, p.Title, p.Limit.Value, p.Limit.Below, p.Limit.Alert, got[0])
			}
		}
	}
}

// TestAlertsAreSeen wants a panel for each alert that has something to draw.
func TestAlertsAreSeen(t *testing.T) {
	unseen := maps.Clone(alerts(t))
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			delete(unseen, p.Limit.Alert)
		}
	}
	// Nothing to draw; a second line in the panel of another; silence.
	want := []string{"DispatcherAbsent", "DispatcherCertificateExpiresToday", "DispatcherNoTraffic"}
	if got := slices.Sorted(maps.Keys(unseen)); !slices.Equal(got, want) {
		t.Errorf("alerts without a panel: %q, want %q", got, want)
	}
}
