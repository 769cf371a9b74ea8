// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// spread is a figure over all rounds.
type spread struct{ median, least, most float64 }

// figure is one number of a usage, such as usage.together.
type figure func(usage) float64

func callerCPU(u usage) float64    { return u.caller }
func callerAllocs(u usage) float64 { return u.allocs }
func callerBytes(u usage) float64  { return u.bytes }

// over is the spread of a figure.
func over(rounds []usage, of figure) spread {
	values := make([]float64, len(rounds))
	for i, u := range rounds {
		values[i] = of(u)
	}
	return spreadOf(values)
}

// ratio is the spread of a figure divided by the peer's CPU in the same round.
func ratio(ours []usage, of figure, peer []usage) spread {
	values := make([]float64, len(ours))
	for i := range ours {
		values[i] = of(ours[i]) / callerCPU(peer[i])
	}
	return spreadOf(values)
}

func spreadOf(values []float64) spread {
	slices.Sort(values)
	return spread{values[len(values)/2], values[0], values[len(values)-1]}
}

func (s spread) whole() string { return fmt.Sprintf("%.0f (%.0f-%.0f)", s.median, s.least, s.most) }

func (s spread) fraction() string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.median, s.least, s.most) }

// report is the table, followed by the goals. It needs the rows of 1 and of 10
// webhooks.
func report(rows []*costRow) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "webhooks\tdirect CPU us\tvia dispatcher CPU us\tratio\tallocs direct/via\tbytes direct/via\tcaller+dispatcher CPU us\tratio to direct")
	byCount := map[int]*costRow{}
	for _, r := range rows {
		byCount[r.webhooks] = r
		fmt.Fprintln(table, strings.Join(r.columns(), "\t"))
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "goal, 10 webhooks behind the dispatcher\tmeasured\tgoal\t")
	one, ten := byCount[1], byCount[10]
	goal(table, "caller, to one called directly", ratio(ten.via, callerCPU, one.direct), 1.3)
	goal(table, "caller, to ten called directly", ratio(ten.via, callerCPU, ten.direct), 0.15)
	goal(table, "caller and dispatcher, to ten called directly", ratio(ten.via, usage.together, ten.direct), 0.25)
	fmt.Fprintf(table, "for comparison: one called directly, to ten\t%s\n", ratio(one.direct, callerCPU, ten.direct).fraction())
	table.Flush()
	return out.String()
}

func (r *costRow) columns() []string {
	pair := func(of figure) string {
		return fmt.Sprintf("%.0f / %.0f", over(r.direct, of).median, over(r.via, of).median)
	}
	return []string{
		fmt.Sprint(r.webhooks),
		over(r.direct, callerCPU).whole(),
		over(r.via, callerCPU).whole(),
		ratio(r.via, callerCPU, r.direct).fraction(),
		pair(callerAllocs),
		pair(callerBytes),
		over(r.via, usage.together).whole(),
		ratio(r.via, usage.together, r.direct).fraction(),
	}
}

func goal(table *tabwriter.Writer, what string, measured spread, most float64) {
	met := "not met"
	if measured.median <= most {
		met = "met"
	}
	fmt.Fprintf(table, "%s\t%s\t<= %.2f\t%s\n", what, measured.fraction(), most, met)
}
