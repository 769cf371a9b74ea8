// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// watch tells how alerts come and go.
type watch struct {
	t      *testing.T
	from   *prometheus
	begin  time.Time
	states map[string]string // of the alerts that are pending or firing
	fired  map[string]bool   // so far
}

func newWatch(t *testing.T, from *prometheus) *watch {
	return &watch{t: t, from: from, begin: time.Now(), fired: map[string]bool{}}
}

// tell prints a line of the timeline.
func (w *watch) tell(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("t+%3.0fs  %s", time.Since(w.begin).Seconds(), fmt.Sprintf(format, args...))
}

// until watches until nothing is missing any more.
func (w *watch) until(what string, missing func() []string) {
	w.t.Helper()
	tick := time.NewTicker(scrapeInterval)
	defer tick.Stop()
	var before []string
	for deadline := time.Now().Add(patience); ; <-tick.C {
		w.look()
		left := missing()
		if len(left) == 0 {
			w.tell("%s", what)
			return
		}
		if !slices.Equal(left, before) && len(left) < 3 {
			w.tell("missing: %q", left)
			before = left
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not after %v: %s; missing: %q; alerts: %v", patience, what, left, w.states)
		}
	}
}

// look tells what has changed.
func (w *watch) look() {
	w.t.Helper()
	now := w.from.alerts()
	names := map[string]bool{}
	for name := range w.states {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if now[name] != w.states[name] {
			w.tell("%s %s", name, cmp.Or(now[name], "resolved"))
		}
		w.fired[name] = w.fired[name] || now[name] == "firing"
	}
	w.states = now
}

// silent returns which of the alerts have not fired so far.
func (w *watch) silent(alerts ...string) func() []string {
	return func() []string {
		return slices.DeleteFunc(slices.Clone(alerts), func(name string) bool { return w.fired[name] })
	}
}

// forget makes now the beginning of the timeline.
func (w *watch) forget() {
	w.begin = time.Now()
	clear(w.fired)
}

// active returns the alerts that are pending or firing.
func (w *watch) active() []string { return slices.Sorted(maps.Keys(w.states)) }
