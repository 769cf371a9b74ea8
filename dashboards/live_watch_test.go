// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// watch tells how alerts come and go.
type watch struct {
	t       *testing.T
	from    *prometheus
	begin   time.Time
	states  map[string]string  // of the alerts that are pending or firing
	courses map[string]*course // of those that have been since begin
}

// course is what became of an alert, in seconds since the beginning.
type course struct{ pending, firing, cleared float64 }

func newWatch(t *testing.T, from *prometheus) *watch {
	return &watch{t: t, from: from, begin: time.Now(), courses: map[string]*course{}}
}

// restart makes now the beginning.
func (w *watch) restart() {
	w.begin = time.Now()
	clear(w.courses)
}

// forget has alerts fire anew.
func (w *watch) forget(alerts ...string) {
	for _, name := range alerts {
		delete(w.courses, name)
	}
}

func (w *watch) now() float64 { return time.Since(w.begin).Seconds() }

// tell prints a line of the timeline.
func (w *watch) tell(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("t+%3.0fs  %s", w.now(), fmt.Sprintf(format, args...))
}

// until watches until nothing is missing any more.
func (w *watch) until(what string, missing func() []string) {
	w.t.Helper()
	tick := time.NewTicker(scrapeInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		w.look()
		left := missing()
		if len(left) == 0 {
			w.tell("%s", what)
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %v: %s; missing: %q; alerts: %v", patience, what, left, w.states)
		}
	}
}

// look tells what has changed.
func (w *watch) look() {
	w.t.Helper()
	states := w.from.alerts()
	all := maps.Clone(states)
	maps.Copy(all, w.states)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if states[name] != w.states[name] {
			w.tell("%s %s", name, cmp.Or(states[name], "resolved"))
			w.change(name, states[name])
		}
	}
	w.states = states
}

// change notes when an alert began, and when it was over for good.
func (w *watch) change(name, state string) {
	c := w.courses[name]
	if c == nil {
		c = &course{pending: w.now()}
		w.courses[name] = c
	}
	switch state {
	case "firing":
		c.firing = cmp.Or(c.firing, w.now())
	case "":
		c.cleared = w.now()
	}
}

// silent returns which of the alerts have not fired so far.
func (w *watch) silent(alerts ...string) func() []string {
	return func() []string {
		return slices.DeleteFunc(slices.Clone(alerts), func(name string) bool {
			c := w.courses[name]
			return c != nil && c.firing > 0
		})
	}
}

// active returns the alerts that are pending or firing.
func (w *watch) active() []string { return slices.Sorted(maps.Keys(w.states)) }

// table prints the courses of the alerts that have fired, in the order in which
// they did, as Markdown.
func (w *watch) table() {
	w.t.Helper()
	fired := slices.DeleteFunc(slices.Collect(maps.Keys(w.courses)), func(name string) bool { return w.courses[name].firing == 0 })
	slices.SortFunc(fired, func(a, b string) int { return cmp.Compare(w.courses[a].firing, w.courses[b].firing) })
	known := alerts(w.t)
	var out strings.Builder
	for _, name := range fired {
		c := w.courses[name]
		fmt.Fprintf(&out, "| `%s` | %s | %.0f | %.0f | %.0f |\n", name, known[name].For, c.pending, c.firing, c.cleared)
	}
	w.t.Logf("in seconds:\n| alert | for | pending | firing | cleared |\n|---|---|---|---|---|\n%s", &out)
}
