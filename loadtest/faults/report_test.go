// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// noise is what a bound is given here beyond what it says: machines are shared.
const noise = time.Second

// TestFaults runs the matrix.
func TestFaults(t *testing.T) {
	rows := slices.Concat(matrix, attacks)
	for i := range rows {
		r := &rows[i]
		if !wanted(r.id) {
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			if r.skip != "" {
				progress("%-4s %-44s not run: %s", r.id, r.what, r.skip)
				t.Skip(r.skip)
			}
			w, rec := r.run(t)
			r.judge(t, w, rec)
			progress("%s", r.line(rec))
		})
	}
}

// judge holds the record against the model and the row's own bounds.
func (r *row) judge(t *testing.T, w *world, rec *record) {
	const shown = 5
	findings := history.Check(r.judged(w, rec), rec.calls, rec.attempts)
	for i, f := range findings {
		if i == shown {
			t.Errorf("and %d more", len(findings)-shown)
			break
		}
		t.Errorf("%v\n%s", f, rec.story(f.UID))
	}
	if high := rec.quantile(99.9); r.within > 0 && high > r.within+noise {
		t.Errorf("p99.9 is %v, the bound %v", high, r.within)
	}
	if r.check != nil {
		r.check(t, w, rec)
	}
}

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

// quantile is of the times of affected calls.
func (rec *record) quantile(q float64) time.Duration {
	h := hdrhistogram.New(1, (2 * time.Minute).Microseconds(), 3)
	for _, c := range rec.affected() {
		_ = h.RecordValue((c.Done - c.Sent).Microseconds()) // within the range, or patience was over
	}
	return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond
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
	bound := "-"
	if r.within > 0 {
		bound = r.within.String()
	}
	return fmt.Sprintf("%-4s %-44s %7d %7d %7d %6d %6d %6d %9s %9s", r.id, r.what, len(calls), allowed, denied, failed, shed,
		rec.extra(), rec.quantile(99.9).Round(100*time.Microsecond), bound)
}
