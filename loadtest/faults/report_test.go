// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// TestFaults runs the matrix.
func TestFaults(t *testing.T) {
	for _, listed := range slices.Concat(matrix, attacks) {
		for _, r := range listed.played() {
			if !wanted(r.id) {
				continue
			}
			for tries, again := 2, true; again; tries-- {
				again = false
				t.Run(r.id, func(t *testing.T) { again = r.play(t, tries > 0) })
			}
		}
	}
}

// play plays the row and judges it. On a machine that stood still for long, or for a
// while and something is wrong, it is to be played again, if it may be.
func (r *row) play(t *testing.T, mayRepeat bool) (again bool) {
	const still, long = 100 * time.Millisecond, time.Second // within one call
	w, rec := r.run(t)
	wrong := r.wrong(t, w, rec)
	if stall := rec.stall(); mayRepeat && (stall > long || stall > still && len(wrong) > 0) {
		progress("%-18s %-52s played again: the callers stood still for %v", r.id, r.what, rounded(stall))
		return true
	}
	report(t, wrong)
	progress("%s", r.line(rec))
	return false
}

// mustBeRight is for who plays a row in another test.
func (r *row) mustBeRight(t *testing.T, w *world, rec *record) { report(t, r.wrong(t, w, rec)) }

func report(t *testing.T, wrong []string) {
	t.Helper()
	for _, text := range wrong {
		t.Error(text)
	}
}

// stall is the longest time within one call for which the callers stood still.
func (rec *record) stall() time.Duration {
	var most time.Duration
	for i := range rec.calls {
		most = max(most, rec.calls[i].Stall)
	}
	return most
}

// wrong is all that is wrong: what was seen while the row was played, which is little
// and explains the rest, then by the bounds and the check of the row, and by the model,
// of which the first few say enough.
func (r *row) wrong(t *testing.T, w *world, rec *record) []string {
	const shown = 5
	found := history.Check(r.judged(w, rec), rec.calls, rec.attempts) // first: it notes what checks ask for
	said := append(slices.Clone(rec.failures), r.late(rec)...)
	if r.check != nil {
		said = append(said, findingsOf(t, func(f *findings) { r.check(f, w, rec) })...)
	}
	for i, f := range found {
		if i == shown {
			return append(said, fmt.Sprintf("and %d more", len(found)-shown))
		}
		said = append(said, fmt.Sprintf("%v\n%s", f, rec.story(f.UID)))
	}
	return said
}

// findings are what a check finds wrong. The row may be played again, so that it does
// not count yet.
type findings struct {
	*testing.T
	said []string
}

// enough ends a check.
type enough struct{}

// findingsOf returns what check finds wrong.
func findingsOf(t *testing.T, check func(*findings)) []string {
	f := &findings{T: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(enough{}) {
				panic(p)
			}
		}()
		check(f)
	}()
	return f.said
}

func (f *findings) Error(args ...any) { f.said = append(f.said, fmt.Sprint(args...)) }

func (f *findings) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *findings) Fatal(args ...any) { f.Error(args...); panic(enough{}) }

func (f *findings) Fatalf(format string, args ...any) { f.Errorf(format, args...); panic(enough{}) }

// story is all that is recorded of one call.
func (rec *record) story(uid string) string {
	text := ""
	for _, c := range rec.calls {
		if c.UID == uid {
			text += fmt.Sprintf("  call %+v\n", c)
		}
	}
	for _, a := range rec.attempts {
		if a.UID == uid {
			text += fmt.Sprintf("  attempt %+v\n", a)
		}
	}
	return text
}

// affected are the calls made while something was broken.
func (rec *record) affected() []history.Call {
	var some []history.Call
	for _, c := range rec.calls {
		if c.Sent >= rec.broken && c.Sent < rec.repaired {
			some = append(some, c)
		}
	}
	return some
}

// extra counts attempts beyond the first of each webhook and call.
func (rec *record) extra() int {
	type one struct{ uid, webhook string }
	seen := map[one]bool{}
	n := 0
	for _, a := range rec.attempts {
		k := one{a.UID, a.Webhook}
		if seen[k] {
			n++
		}
		seen[k] = true
	}
	return n
}

func (r *row) line(rec *record) string {
	var allowed, denied, failed, shed int
	calls := rec.affected()
	for _, c := range calls {
		switch {
		case c.Err != "":
			failed++
		case c.Allowed:
			allowed++
		case c.Code == 429:
			shed++
		case c.Code >= 500:
			failed++
		default:
			denied++
		}
	}
	l := r.latencies(rec)
	bound := "-"
	if r.within > 0 {
		bound = r.within.String()
	}
	if r.then > 0 {
		bound += ", " + r.then.String()
	}
	return fmt.Sprintf("%-18s %-52s %6d %7d %6d %6d %5d %5d %7v %7v %8v %8v %8v %8v %9s %8v", r.id, r.what, len(calls), allowed, denied, failed, shed, rec.extra(),
		at(l.control.direct, 0.5), at(l.under.direct, 0.9), at(l.control.took, 0.5), at(l.under.took, 0.5), at(l.under.took, 0.9), at(l.under.took, 0.99), bound, rounded(rec.stall()))
}

// at is a quantile, or nothing where there is nothing.
func at(sorted []time.Duration, q float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return rounded(quantile(sorted, q)).String()
}
