// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// A second of the live test is a minute of the rules.
const (
	speed    = 60
	shortest = 4 * scrapeInterval // or a range would hold too few samples
	longest  = 10 * time.Second   // that an alert waits: a few would hold up all others
)

var (
	span  = regexp.MustCompile(`^(\d+)([smhd])$`)
	spans = regexp.MustCompile(`\[(\d+[smhd])\]`)
	units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// scaled shortens a duration in Prometheus' words.
func scaled(t *testing.T, text string) time.Duration {
	t.Helper()
	parts := span.FindStringSubmatch(text)
	if parts == nil {
		t.Fatalf("%q is no duration", text)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return max(time.Duration(n)*units[parts[2]]/speed, shortest)
}

// scaledRanges shortens the ranges of an expression.
func scaledRanges(t *testing.T, expr string) string {
	t.Helper()
	return spans.ReplaceAllStringFunc(expr, func(r string) string {
		return fmt.Sprintf("[%.0fs]", scaled(t, r[1:len(r)-1]).Seconds())
	})
}

// writeScaledRules writes the rules to a directory, shortened.
func writeScaledRules(t *testing.T, dir string) {
	t.Helper()
	for _, file := range files(t, "rules/*.yaml") {
		var content struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		}
		if err := yaml.UnmarshalStrict([]byte(read(t, file)), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				scaleRule(t, r)
			}
		}
		text, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func scaleRule(t *testing.T, r map[string]any) {
	t.Helper()
	for _, key := range []string{"for", "keep_firing_for"} {
		if text, ok := r[key].(string); ok {
			r[key] = min(scaled(t, text), longest).String()
		}
	}
	expr, ok := r["expr"].(string)
	if !ok {
		t.Fatalf("a rule without an expression: %v", r)
	}
	r["expr"] = scaledRanges(t, expr)
}

func TestScaled(t *testing.T) {
	const given, want = `rate(a_total[5m]) / rate(b:rate5m{c="[x]"}[1d]) > max_over_time(d[1m])`, `rate(a_total[5s]) / rate(b:rate5m{c="[x]"}[1440s]) > max_over_time(d[4s])`
	if got := scaledRanges(t, given); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
