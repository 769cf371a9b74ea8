// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// figure is one line of the table: a promise, and how to find out whether it is
// kept.
type figure struct {
	id   string // P1 and so on
	what string
	peer string // what it is compared with; empty: the promise is absolute
	goal goal
	how  source
}

// source measures a figure. An error says why it could not.
type source interface {
	measure(l *lab) (reading, error)
}

// reading is what a source has measured: one value for each round.
type reading struct {
	ours, peer []float64 // in unit; peer may be empty
	unit       string
	score      []float64 // what the goal is about: a ratio of the two, or ours
	remark     string    // what makes it doubtful
}

// against compares costs: the score is how many times the peer's ours is.
func against(ours, peer []float64, unit string) reading {
	return reading{ours: ours, peer: peer, unit: unit, score: quotients(ours, peer)}
}

// gain compares costs the other way round: how many times less ours is.
func gain(ours, peer []float64, unit string) reading {
	return reading{ours: ours, peer: peer, unit: unit, score: quotients(peer, ours)}
}

// absolute has no peer.
func absolute(ours []float64, unit string) reading {
	return reading{ours: ours, unit: unit, score: ours}
}

// goal bounds the median of a reading's score. The zero goal is none: the figure is
// there to be known.
type goal struct {
	least   bool // at least, instead of at most
	above   bool // more than that
	limit   float64
	stretch float64 // a further limit that would be better still; 0: none
	unit    string
}

func atMost(limit float64, unit string) goal  { return goal{limit: limit, unit: unit} }
func atLeast(limit float64, unit string) goal { return goal{least: true, limit: limit, unit: unit} }
func above(limit float64, unit string) goal   { return goal{above: true, limit: limit, unit: unit} }

// or adds what would be better still.
func (g goal) or(stretch float64) goal {
	g.stretch = stretch
	return g
}

// times is the unit of a ratio.
const times = "x"

func (g goal) met(score spread, limit float64) bool {
	switch {
	case g.above:
		return score.Median > limit
	case g.least:
		return score.Median >= limit
	}
	return score.Median <= limit
}

// judge is what a score comes to.
func (g goal) judge(score spread) verdict {
	switch {
	case g == goal{}:
		return known
	case !g.met(score, g.limit):
		return missed
	case g.stretch != 0 && g.met(score, g.stretch):
		return stretched
	}
	return reached
}

// verdict is what a figure comes to.
type verdict string

const (
	known     verdict = "no goal"
	missed    verdict = "not met"
	reached   verdict = "met"
	stretched verdict = "stretch met"
)

// String is such as "<= 1.5 x (1.35)", with the stretch goal in parentheses.
func (g goal) String() string {
	if g == (goal{}) {
		return ""
	}
	sign := "<="
	switch {
	case g.above:
		sign = ">"
	case g.least:
		sign = ">="
	}
	text := fmt.Sprintf("%s %v %s", sign, g.limit, g.unit)
	if g.stretch != 0 {
		text += fmt.Sprintf(" (%v)", g.stretch)
	}
	return text
}

// result is a figure after its measurement.
type result struct {
	Figure string  `json:"figure"`
	What   string  `json:"what"`
	Peer   string  `json:"peer,omitempty"`
	Unit   string  `json:"unit,omitempty"` // of Ours and Theirs
	Ours   *spread `json:"ours,omitempty"`
	Theirs *spread `json:"theirs,omitempty"`
	Score  *spread `json:"score,omitempty"` // in the unit of the goal
	Goal   string  `json:"goal,omitempty"`
	Met    verdict `json:"met,omitempty"` // empty: not measured
	Why    string  `json:"notMeasured,omitempty"`
	Remark string  `json:"remark,omitempty"` // what makes it doubtful
}

// take measures f.
func (f *figure) take(l *lab) result {
	r := result{Figure: f.id, What: f.what, Peer: f.peer, Goal: f.goal.String()}
	got, err := f.how.measure(l)
	if err != nil {
		r.Why = cell(err.Error())
		return r
	}
	r.Unit, r.Remark = got.unit, cell(got.remark)
	r.Ours, r.Theirs, r.Score = spreadOf(got.ours), spreadOf(got.peer), spreadOf(got.score)
	if r.Score == nil {
		r.Why = "nothing was measured"
		return r
	}
	r.Met = f.goal.judge(*r.Score)
	return r
}

// cell is a text as one cell of a table: what a program has said may have lines, and
// bars.
func cell(text string) string {
	const most = 300
	line, _, _ := strings.Cut(strings.ReplaceAll(text, "|", "/"), "\n")
	return line[:min(len(line), most)]
}

// judgement is the last column.
func (r *result) judgement() string {
	switch {
	case r.Why != "":
		return "not measured: " + r.Why
	case r.Remark != "":
		return string(r.Met) + ": " + r.Remark
	}
	return string(r.Met)
}
