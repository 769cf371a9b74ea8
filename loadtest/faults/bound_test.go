// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// limit is what a quantile of times may be above that of a control, beyond a bound:
// slack, or so many times the control's, whichever is more. In full size, where there
// are ten times as many calls, it is half of the slack.
type limit struct {
	q     float64
	slack time.Duration
	times float64
}

// limits are for a span with a fault, and the one before it without.
var limits = []limit{
	{0.5, 10 * time.Millisecond, 1},
	{0.9, 20 * time.Millisecond, 2},
	{0.99, 100 * time.Millisecond, 3},
	{0.999, 200 * time.Millisecond, 3},
}

// detour are for a span without a fault. There is no control: it is judged by what
// others of the machine explain.
var detour = []limit{{q: 0.5, slack: 20 * time.Millisecond}}

// hops is how often whoever works on an admission is woken up: as often as for so
// many direct calls of a webhook.
const hops = 4

// span is what was measured in a time: how long the calls took that were sent in it,
// sorted, and how long direct calls of a webhook did meanwhile. Those do not know of
// the dispatcher nor of the fault, so that they show what else the machine is doing.
type span struct{ took, direct []time.Duration }

// latencies are the spans of a row.
type latencies struct {
	control span // before the fault
	under   span // during the fault, until row.opens
	open    span // and from then on
}

func (r *row) latencies(rec *record) latencies {
	const warm = 400 * time.Millisecond // connections are made
	within := func(from, until time.Duration) span {
		return span{
			took: times(rec.calls, from, until, func(c *history.Call) bool {
				return c.Exempt == r.exempts && (c.Done < rec.broken || from >= rec.broken)
			}),
			direct: times(rec.direct, from, until, func(*history.Call) bool { return true }),
		}
	}
	opened := rec.repaired
	if r.then > 0 {
		opened = rec.broken + r.opens
	}
	return latencies{within(rec.started+warm, rec.broken), within(rec.broken, opened), within(opened, rec.repaired)}
}

// times are those of the calls that were sent within a time, sorted.
func times(calls []history.Call, from, until time.Duration, wanted func(*history.Call) bool) []time.Duration {
	var list []time.Duration
	for i := range calls {
		if c := &calls[i]; c.Sent >= from && c.Sent < until && wanted(c) {
			list = append(list, c.Done-c.Sent)
		}
	}
	slices.Sort(list)
	return list
}

// late says where answers under a fault come later than the row says, compared with
// those before it, and where those come much later than a webhook's own.
func (r *row) late(rec *record) (said []string) {
	if r.within == 0 {
		return nil
	}
	l := r.latencies(rec)
	if r.then == 0 {
		l.open = l.under
	}
	for _, s := range []span{l.control, l.under, l.open} {
		if len(s.took) == 0 || len(s.direct) == 0 {
			return []string{fmt.Sprintf("too few calls: %d before the fault, %d under it, %d then", len(l.control.took), len(l.under.took), len(l.open.took))}
		}
	}
	if len(r.phases) == 0 { // else one call waits for the other
		said = append(said, l.control.exceeds("without a fault", detour, 0, span{took: []time.Duration{0}})...)
	}
	said = append(said, l.under.exceeds("under the fault", limits, r.within, l.control)...)
	if r.then > 0 {
		// Those that try whether the circuit may close take as long as ever.
		said = append(said, l.open.exceeds(fmt.Sprintf("from %v on", r.opens), limits[:1], r.then, l.control)...)
	}
	return said
}

// exceeds names the first quantile that is above its limit. Quantiles that fewer
// calls than one are beyond say nothing.
func (s span) exceeds(what string, all []limit, bound time.Duration, control span) []string {
	for _, l := range all {
		if float64(len(s.took))*(1-l.q) < 1-rounding {
			break
		}
		was, is, direct := quantile(control.took, l.q), quantile(s.took, l.q), time.Duration(0)
		if len(s.direct) > 0 {
			direct = quantile(s.direct, l.q)
		}
		most := was + bound + max(l.slack/time.Duration(sized(1, 2)), time.Duration(l.times*float64(was))) + hops*direct
		if is > most {
			return []string{fmt.Sprintf("answers come late %s: p%v is %v, at most %v where the control has %v, a direct call %v and the bound is %v",
				what, 100*l.q, rounded(is), rounded(most), rounded(was), rounded(direct), bound)}
		}
	}
	return nil
}
