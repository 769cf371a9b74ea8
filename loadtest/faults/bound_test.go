// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// limit is what a quantile of times may be above that of a control, beyond a bound:
// slack, or so many times the control's, whichever is more. That is for what a
// shared machine does to one of two spans and not to the other.
type limit struct {
	q     float64
	slack time.Duration
	times float64
}

// limits are for a span with a fault, and the one before it without.
var limits = []limit{
	{0.5, 10 * time.Millisecond, 1},
	{0.9, 30 * time.Millisecond, 2},
	{0.99, 100 * time.Millisecond, 3},
	{0.999, 200 * time.Millisecond, 3},
}

// detour are for a control, and the same webhook asked directly meanwhile.
var detour = []limit{
	{0.5, 20 * time.Millisecond, 3},
	{0.9, 40 * time.Millisecond, 3},
}

// span is about the calls that were sent within a time: how long they took, without
// the time for which the caller itself did not run, and for how long that was. Both
// are sorted.
type span struct{ took, stall []time.Duration }

func newSpan(calls []history.Call, from, until time.Duration, wanted func(*history.Call) bool) span {
	var s span
	for i := range calls {
		if c := &calls[i]; c.Sent >= from && c.Sent < until && wanted(c) {
			s.took, s.stall = append(s.took, c.Done-c.Sent-c.Stall), append(s.stall, c.Stall)
		}
	}
	slices.Sort(s.took)
	slices.Sort(s.stall)
	return s
}

// latencies are the times of the calls of a row that its bounds are about, by what
// was asked when.
type latencies struct {
	direct  span // a webhook itself, before the fault
	control span // before the fault
	under   span // during the fault, until row.opens
	open    span // and from then on
}

func (r *row) latencies(rec *record) latencies {
	judged := func(c *history.Call) bool { return c.Exempt == r.exempts }
	const warm = 400 * time.Millisecond // connections are made
	opened, begin := rec.repaired, rec.started+warm
	if r.then > 0 {
		opened = rec.broken + r.opens
	}
	return latencies{
		direct:  newSpan(rec.direct, begin, rec.broken, judged),
		control: newSpan(rec.calls, begin, rec.broken, func(c *history.Call) bool { return judged(c) && c.Done < rec.broken }),
		under:   newSpan(rec.calls, rec.broken, opened, judged),
		open:    newSpan(rec.calls, opened, rec.repaired, judged),
	}
}

// bounded: answers under a fault come as soon as the row says, compared with those
// before it. Those come nearly as soon as a webhook's own.
func (r *row) bounded(t *testing.T, rec *record) {
	t.Helper()
	if r.within == 0 {
		return
	}
	l := r.latencies(rec)
	if len(l.control.took) == 0 || len(l.under.took) == 0 || r.then > 0 && len(l.open.took) == 0 {
		t.Errorf("too few calls: %d before the fault, %d under it, %d then", len(l.control.took), len(l.under.took), len(l.open.took))
		return
	}
	if len(l.direct.took) > 0 {
		exceed(t, "without a fault", detour, 0, l.direct, l.control)
	}
	exceed(t, "under the fault", limits, r.within, l.control, l.under)
	// Those that try whether the circuit may close take as long as ever.
	exceed(t, fmt.Sprintf("from %v on", r.opens), limits[:2], r.then, l.control, l.open)
}

// exceed reports the first quantile that is above its limit. Quantiles that fewer
// calls than one are beyond say nothing. What the callers' process suffers from others
// of the machine, each process on the way may suffer, too.
func exceed(t *testing.T, what string, all []limit, bound time.Duration, control, judged span) {
	t.Helper()
	const processes = 3 // callers with webhooks, dispatcher, kernel
	for _, l := range all {
		if float64(len(judged.took))*(1-l.q) < 1 {
			return
		}
		was, is, stall := quantile(control.took, l.q), quantile(judged.took, l.q), quantile(judged.stall, l.q)
		most := was + bound + max(l.slack, time.Duration(l.times*float64(was))) + processes*stall
		if is > most {
			t.Errorf("answers come late %s: p%v is %v, at most %v where the control has %v, the bound is %v and the callers stood still for %v",
				what, 100*l.q, rounded(is), rounded(most), rounded(was), bound, rounded(stall))
			return
		}
	}
}
