// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPromtool lets Prometheus' own tool check the rules and run their unit tests.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: apt-get install --no-install-recommends prometheus, which also starts a service")
	}
	for name, pattern := range map[string]string{"check": "rules/*.yaml", "test": "rules/tests/*.yaml"} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{name, "rules"}, files(t, pattern)...)
			out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
			if err != nil {
				t.Errorf("promtool %s rules: %v\n%s", name, err, out)
			}
		})
	}
}

// TestUnitTests wants each alert to fire in a unit test, and to clear again.
func TestUnitTests(t *testing.T) {
	var text string
	for _, file := range files(t, "rules/tests/*.yaml") {
		text += read(t, file)
	}
	for name := range alerts(t) {
		if !strings.Contains(text, "- name: '"+name+": ") {
			t.Errorf("%s has no unit test in rules/tests", name)
		}
		asked := strings.Count(text, `- expr: 'ALERTS{alertname="`+name+`", alertstate="firing"}'`)
		fired := strings.Count(text, `- labels: 'ALERTS{alertname="`+name+`", alertstate="firing"`)
		if asked != 3 || fired != 1 {
			t.Errorf("%s: asked for %d times and fires %d times in rules/tests, want before, firing and cleared", name, asked, fired)
		}
	}
}
