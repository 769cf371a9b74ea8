// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dashboards"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/transport"
)

var (
	setAttribute  = regexp.MustCompile(`attribute\.[A-Z]\w*\("([^"]+)"`)
	spanAttribute = regexp.MustCompile(`\bspan\.([a-z0-9_.]+) (?:=~|=) "([^"]*)"`)
	traceVariable = regexp.MustCompile(`^\$\{(\w+):pipe\}$`)
)

// spanAttributes returns the names of all attributes that spans are given.
func spanAttributes(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range []string{"../internal/tracing/span.go", "../dispatcher/invocation.go", "../transport/trace.go"} {
		for _, found := range setAttribute.FindAllStringSubmatch(read(t, file), -1) {
			names[found[1]] = true
		}
	}
	return names
}

// closedValues are what attributes with a closed set of values may be.
func closedValues() map[string][]string {
	return map[string][]string{
		"admission.phase":        {chain.Mutating.String(), chain.Validating.String()},
		"admission.outcome":      {dispatcher.Failed.String(), dispatcher.FailedOpen.String()},
		"admission.attempt.kind": {transport.First.String(), transport.Retry.String(), transport.Hedge.String()},
	}
}

// TestTraces wants links to search for attributes that spans have, with values
// that they can have or that the dashboard lets one choose.
func TestTraces(t *testing.T) {
	known, closed := spanAttributes(t), closedValues()
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			conditions := spanAttribute.FindAllStringSubmatch(p.Traces, -1)
			if len(conditions) != strings.Count(p.Traces, "span.") {
				t.Errorf("%s, %s: %s is not understood", d.UID, p.Title, p.Traces)
			}
			for _, c := range conditions {
				if !known[c[1]] {
					t.Errorf("%s, %s: no span has the attribute %s", d.UID, p.Title, c[1])
				}
				if !isChoice(d, c[2]) && !areAmong(strings.Split(c[2], "|"), closed[c[1]]) {
					t.Errorf("%s, %s: %s is never %s", d.UID, p.Title, c[1], c[2])
				}
			}
		}
	}
}

// isChoice reports whether the value is that of one of the dashboard's variables.
func isChoice(d dashboards.Dashboard, value string) bool {
	name := traceVariable.FindStringSubmatch(value)
	return name != nil && slices.ContainsFunc(d.Vars, func(v dashboards.Variable) bool { return v.Name == name[1] })
}

func areAmong(words, known []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) })
}

// TestTroubleHasTraces wants a link to traces wherever a panel shows requests that
// went wrong.
func TestTroubleHasTraces(t *testing.T) {
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			trouble := slices.ContainsFunc([]string{"Failing closed", "Failing open", "Time left", "Attempts"},
				func(title string) bool { return strings.HasPrefix(p.Title, title) })
			if trouble && p.Traces == "" {
				t.Errorf("%s, %s: no link to traces", d.UID, p.Title)
			}
		}
	}
}
