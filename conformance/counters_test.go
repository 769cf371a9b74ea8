// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// counters count what a run has reached. All that it must reach is there from the
// beginning.
type counters struct{ counts map[string]int }

func newCounters() *counters {
	c := &counters{map[string]int{}}
	for _, form := range script.Forms() {
		c.counts[formCounter(form)] = 0
	}
	for _, row := range pair.Table {
		if !row.Rare {
			c.counts["difference: "+row.ID] = 0
		}
	}
	for _, name := range append(random.Features(), verdicts...) {
		c.counts[name] = 0
	}
	return c
}

func formCounter(f script.Form) string { return "answer: " + string(f) }

func (c *counters) forms(called map[script.Form]int) {
	for form, n := range called {
		if form != "" {
			c.counts[formCounter(form)] += n
		}
	}
}

func (c *counters) add(of *random.Case, p *world.Played) {
	for _, feature := range of.FeaturesOf(p.Admission) {
		c.counts[feature]++
	}
	for _, d := range p.Differences {
		if d.Row != "" {
			c.counts["difference: "+d.Row]++
		}
	}
	for _, verdict := range verdictsOf(p) {
		c.counts[verdict]++
	}
}

// missing are those that were never reached.
func (c *counters) missing() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		if c.counts[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}

// String is a table.
func (c *counters) String() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&out, "%8d  %s\n", c.counts[name], name)
	}
	return out.String()
}
