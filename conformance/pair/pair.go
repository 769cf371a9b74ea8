// SPDX-License-Identifier: Apache-2.0

// Package pair compares what became of one admission when the API server decided it
// by itself, and when it decided it through the dispatcher.
package pair

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// Pair is one admission, decided both ways.
type Pair struct {
	Direct  Oracle
	Through caller.Result
	// Place begins the names of configurations in the dispatcher's registry.
	Place string
	// Considers reports whether the registration's entry of that name is one for a
	// webhook: where several entries deny, the API server shows one. Nil: all are.
	Considers func(entry, configuration, webhook string) bool
	// StandIns are the ways in which the dispatcher reads the webhooks' answers
	// differently: each by itself, and then all together.
	StandIns []StandIn
}

// Oracle is what the API server decided by itself.
type Oracle struct {
	caller.Result
	// Place begins the names of its configurations.
	Place string
	// NotConvertible are the webhooks, as configuration/webhook, that fail here
	// because the dispatcher could not convert the object for them.
	NotConvertible map[string]bool
	// Alone returns what it decides with each validating webhook alone, in the order
	// of their configurations: of several denials it shows the one that came first.
	Alone func() ([]Alone, error)
}

// Alone is what the API server decides with one validating webhook, if mutating ones
// are as they were.
type Alone struct {
	Configuration, Webhook string
	caller.Result
}

// notConvertible reports whether some webhook of that name fails for that reason.
func (o *Oracle) notConvertible(webhook string) bool {
	for key := range o.NotConvertible {
		if strings.HasSuffix(key, "/"+webhook) {
			return true
		}
	}
	return false
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
// without is not meant. Where the dispatcher reads answers differently, it must have
// decided as if the webhooks had said what it reads.
func (p *Pair) Differences() ([]Difference, error) {
	all, err := p.differences(&p.Direct)
	if err != nil || len(p.StandIns) == 0 {
		return all, err
	}
	as, err := p.instead(p.StandIns[len(p.StandIns)-1])
	if err != nil || !Meant(as) {
		return as, err
	}
	if Meant(all) {
		return all, nil
	}
	for _, s := range p.StandIns { // the simplest that explains it
		if as, err = p.instead(s); err != nil || Meant(as) {
			break
		}
	}
	return as, err
}

// instead compares with the API server whose webhooks say what the dispatcher reads.
func (p *Pair) instead(s StandIn) ([]Difference, error) {
	direct, err := s.Play()
	if err != nil {
		return nil, err
	}
	rest, err := p.differences(&direct)
	if err != nil {
		return nil, err
	}
	if !Meant(rest) {
		for i := range rest {
			rest[i].Aspect = fmt.Sprintf("%s, with %v", rest[i].Aspect, s.Rows)
		}
		return rest, nil
	}
	for _, row := range s.Rows {
		rest = append(rest, Difference{Row: row, Aspect: "verdict", Direct: p.Direct.verdict(), Through: direct.verdict()})
	}
	return rest, nil
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

func (p *Pair) differences(direct *Oracle) ([]Difference, error) {
	through := p.Through
	if direct.Allowed != through.Allowed {
		return []Difference{{Aspect: "verdict", Direct: direct.verdict(), Through: (&Oracle{Result: through}).verdict()}}, nil
	}
	var all []Difference
	if direct.Allowed {
		if !reflect.DeepEqual(direct.Object, through.Object) {
			all = append(all, Difference{Aspect: "object", Direct: direct.Object, Through: through.Object})
		}
		patches, err := p.patches(direct)
		if err != nil {
			return nil, err
		}
		all = append(all, patches...)
	} else {
		if direct.Phase != through.Phase {
			all = append(all, Difference{Aspect: "phase", Direct: direct.Phase, Through: through.Phase})
		}
		denials, err := p.denial(direct)
		if err != nil {
			return nil, err
		}
		all = append(all, denials...)
	}
	// After a denial, which other webhooks of the phase have answered is a matter of time.
	if direct.Allowed || direct.Phase == caller.Mutating {
		all = append(all, warnings(direct.Result, through)...)
		all = append(all, annotations(direct.Result, through)...)
		all = append(all, p.failOpen(direct)...)
	}
	return all, nil
}
