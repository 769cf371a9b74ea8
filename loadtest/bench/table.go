// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// report is all that a run has found out.
type report struct {
	Machine  machine   `json:"machine"`
	Results  []result  `json:"results"`
	Profiles []profile `json:"profiles,omitempty"`
}

// columns are those of every figure, and of what a run has measured.
var (
	promised = []string{"figure", "what", "peer", "goal (stretch)"}
	measured = []string{"ours", "peer's", "ratio", "met"}
)

func (r *result) promised() []string { return []string{r.Figure, r.What, r.Peer, r.Goal} }

func (r *result) measured() []string {
	score := ""
	if r.Score != nil {
		score = r.Score.String()
	}
	return []string{withUnit(r.Ours, r.Unit), withUnit(r.Theirs, r.Unit), score, r.judgement()}
}

func withUnit(s *spread, unit string) string {
	if s == nil {
		return ""
	}
	return number(s.Median) + " " + unit
}

// writeText writes the tables for a terminal.
func (r *report) writeText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...[]string) {
		var all []string
		for _, c := range cells {
			all = append(all, c...)
		}
		fmt.Fprintln(table, strings.Join(all, "\t"))
	}
	if len(r.Results) > 0 {
		row([]string{strings.ToUpper(strings.Join(promised, "\t"))}, []string{strings.ToUpper(strings.Join(measured, "\t"))})
	}
	for i := range r.Results {
		row(r.Results[i].promised(), r.Results[i].measured())
	}
	for i := range r.Profiles {
		r.Profiles[i].writeText(table)
	}
	return table.Flush()
}

// writeJSON writes the report for programs.
func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
