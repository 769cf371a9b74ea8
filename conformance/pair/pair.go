// SPDX-License-Identifier: Apache-2.0

// Package pair compares what became of one admission when the API server decided it
// by itself, and when it decided it through the dispatcher.
package pair

import (
	"fmt"
	"reflect"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// Pair is one admission, decided both ways.
type Pair struct {
	Direct  Oracle
	Through caller.Result
	// Paths is how many paths the API server has of the dispatcher in the validating
	// phase: of several that deny it shows one.
	Paths int
	// StandIns are the ways in which the dispatcher may read the webhooks' answers
	// differently, the simplest first.
	StandIns []StandIn
}

// Oracle is what the API server decided by itself.
type Oracle struct {
	caller.Result
	// Alone returns what it decides with each validating webhook alone: of several
	// denials it shows the one that came first.
	Alone func() ([]caller.Result, error)
}

// StandIn is how the API server decides if its webhooks say what the dispatcher
// reads.
type StandIn struct {
	Rows []string
	Play func() (Oracle, error)
}

// Difference is one difference, and the Row that means it.
type Difference struct {
	Row             string // empty: not meant
	Aspect          string
	Direct, Through any
}

// String is the difference in one line.
func (d Difference) String() string {
	row := d.Row
	if row == "" {
		row = "NOT MEANT"
	}
	return fmt.Sprintf("%s [%s]: directly %v, through the dispatcher %v", d.Aspect, row, brief(d.Direct), brief(d.Through))
}

func brief(v any) string {
	const most = 300
	text := fmt.Sprintf("%q", fmt.Sprint(v))
	return text[:min(len(text), most)]
}

// Differences returns where the two differ. Each difference has its Row; one
// without is not meant.
func (p *Pair) Differences() ([]Difference, error) {
	all, err := p.differences(p.Direct)
	if err != nil || Meant(all) {
		return all, err
	}
	for _, s := range p.StandIns {
		direct, err := s.Play()
		if err != nil {
			return nil, err
		}
		rest, err := p.differences(direct)
		if err != nil {
			return nil, err
		}
		if !Meant(rest) {
			all = append(all, tried(s.Rows, rest)...)
			continue
		}
		for _, row := range s.Rows {
			rest = append(rest, Difference{Row: row, Aspect: "verdict", Direct: p.Direct.verdict(), Through: direct.verdict()})
		}
		return rest, nil
	}
	return all, nil
}

// tried are the differences that the stand-ins for rows leave.
func tried(rows []string, rest []Difference) []Difference {
	for i := range rest {
		rest[i].Aspect = fmt.Sprintf("%s, also with %v", rest[i].Aspect, rows)
	}
	return rest
}

// Meant reports whether each difference has its Row.
func Meant(all []Difference) bool {
	for _, d := range all {
		if d.Row == "" {
			return false
		}
	}
	return true
}

func (o *Oracle) verdict() string {
	if o.Allowed {
		return "allowed"
	}
	return fmt.Sprintf("denied with %d: %s", o.Status.Code, o.Status.Message)
}

func (p *Pair) differences(direct Oracle) ([]Difference, error) {
	through := p.Through
	if direct.Allowed != through.Allowed {
		return []Difference{{Aspect: "verdict", Direct: direct.verdict(), Through: (&Oracle{Result: through}).verdict()}}, nil
	}
	var all []Difference
	if direct.Allowed {
		if !reflect.DeepEqual(direct.Object, through.Object) {
			all = append(all, Difference{Aspect: "object", Direct: direct.Object, Through: through.Object})
		}
		all = append(all, patches(direct.Result, through)...)
	} else {
		if direct.Phase != through.Phase {
			all = append(all, Difference{Aspect: "phase", Direct: direct.Phase, Through: through.Phase})
		}
		denials, err := denial(direct, through, p.Paths)
		if err != nil {
			return nil, err
		}
		all = append(all, denials...)
	}
	// After a denial, which other webhooks of the phase were heard is a matter of time.
	if direct.Allowed || direct.Phase == caller.Mutating {
		all = append(all, warnings(direct.Result, through)...)
		all = append(all, annotations(direct.Result, through)...)
		all = append(all, failOpen(direct.Result, through)...)
	}
	return all, nil
}
