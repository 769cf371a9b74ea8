// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// maxJudgements bounds how often one decision compiles for objects that are new or have
// changed, and maxAgain for those that were refused before, which come after all others:
// what they conflict with may have gone. Objects that nobody got to wait for the next
// decision. So no number of bad objects keeps a good one out.
const (
	maxJudgements = 200
	maxAgain      = 20
)

// judge compiles objects. It returns every problem, with the name of the file of the
// object that it is said of.
type judge func([]*object) (*compile.Compiled, []manifest.Problem)

// decision is what acceptance came to.
type decision struct {
	objects  []*object // by key
	mirrored []*object // of workload clusters
	compiled *compile.Compiled
	refused  []Refused
	rejected map[string]string // hashes of what was found at fault, now or before, by key
	unjudged bool              // there was too much to do
}

// acceptor finds what to serve of the objects that an API has.
//
// An object that is unchanged since it was accepted never loses to one that has changed,
// whatever their names: those that have changed are added to those that have not, the
// oldest first, and one is at fault if what is there does not compile with it.
type acceptor struct {
	judge
	left    int // judgements
	before  map[string]string
	refused map[string]Refused
	found   map[string]string // hashes of those that were found at fault, some with conflicts behind
	last    *compile.Compiled // of the objects that were judged good last
	cut     bool
}

// accept decides. accepted are the objects of what was decided before, and before the
// hashes of what was found at fault then, by key.
func accept(wanted []*object, accepted map[string]*object, before map[string]string, judge judge) decision {
	a := &acceptor{judge: judge, left: maxJudgements, before: before, refused: map[string]Refused{}, found: map[string]string{}}
	var incumbents, changed, again, unresolved []*object
	for _, o := range wanted {
		had := accepted[o.key]
		if had != nil {
			incumbents = append(incumbents, had)
		}
		switch {
		case had != nil && had.hash == o.hash:
		case len(o.unresolved) > 0:
			unresolved = append(unresolved, o)
		case strings.TrimSuffix(before[o.key], conflicts) == o.hash:
			again = append(again, o)
		default:
			changed = append(changed, o)
		}
	}
	inOrder := func(x, y *object) int {
		return cmp.Or(
			compareBool(accepted[x.key] == nil, accepted[y.key] == nil),
			compareBool(!x.attested, !y.attested),
			x.created.Compare(y.created), cmp.Compare(x.key, y.key))
	}
	slices.SortFunc(incumbents, inOrder)
	slices.SortFunc(changed, inOrder)
	slices.SortFunc(again, inOrder)
	set := a.grow(map[string]*object{}, incumbents)
	for _, o := range unresolved {
		a.refuse(o, ReasonUnresolved, o.unresolved)
	}
	set = a.growOn(set, changed)
	a.left = min(a.left, maxAgain)
	set = a.growOn(set, again)
	d := decision{objects: sorted(set), compiled: a.last, unjudged: a.cut, rejected: a.found}
	for _, r := range a.refused {
		r.Kept = set[r.Object] != nil
		d.refused = append(d.refused, r)
	}
	for _, o := range again {
		if set[o.key] != o {
			a.found[o.key] = before[o.key]
		}
	}
	slices.SortFunc(d.refused, func(x, y Refused) int { return cmp.Compare(x.Object, y.Object) })
	return d
}

// growOn grows until nothing more is accepted: what is at fault alone may be good with
// what came after it.
func (a *acceptor) growOn(set map[string]*object, add []*object) map[string]*object {
	for {
		set = a.grow(set, add)
		left := slices.DeleteFunc(slices.Clone(add), func(o *object) bool { return set[o.key] == o })
		if len(left) == 0 || len(left) == len(add) {
			return set
		}
		add = left
	}
}

// grow returns set with as many of add as compile with it, the first ones first.
func (a *acceptor) grow(set map[string]*object, add []*object) map[string]*object {
	if len(add) == 0 {
		return set
	}
	if a.left--; a.left < 0 {
		for _, o := range add {
			_, found := a.found[o.key]
			a.cut = a.cut || !found && strings.TrimSuffix(a.before[o.key], conflicts) != o.hash
			if _, said := a.refused[o.key]; !said {
				a.refuse(o, ReasonWaiting, nil)
			}
		}
		return set
	}
	with := make(map[string]*object, len(set)+len(add))
	for key, o := range set {
		with[key] = o
	}
	for _, o := range add {
		with[o.key] = o
	}
	compiled, problems := a.judgeSafely(sorted(with))
	if compiled != nil {
		a.last = compiled
		for _, o := range add {
			delete(a.refused, o.key)
			delete(a.found, o.key)
		}
		return with
	}
	if len(add) == 1 {
		a.refuse(add[0], a.reason(set, add[0]), problems)
		return set
	}
	half := len(add) / 2
	return a.grow(a.grow(set, add[:half]), add[half:])
}

// conflicts ends the hash of what was found at fault beside others, and not alone.
const conflicts = ":conflict"

// reason tells an object that is at fault alone from one that does not go with others, and
// notes which it is: that is found out once.
func (a *acceptor) reason(set map[string]*object, o *object) string {
	found := o.hash
	switch before := a.before[o.key]; {
	case strings.TrimSuffix(before, conflicts) == o.hash:
		found = before
	case len(set) > 0 && a.left > 0:
		a.left--
		if compiled, _ := a.judgeSafely([]*object{o}); compiled != nil {
			found += conflicts
		}
	}
	a.found[o.key] = found
	if found != o.hash {
		return ReasonConflict
	}
	return ReasonInvalid
}

// judgeSafely makes a panic of the compiler a problem of what it compiles.
func (a *acceptor) judgeSafely(objects []*object) (compiled *compile.Compiled, problems []manifest.Problem) {
	defer func() {
		if r := recover(); r != nil {
			compiled, problems = nil, []manifest.Problem{{Reason: fmt.Sprintf("panics the compiler: %.200v", r)}}
		}
	}()
	return a.judge(objects)
}

// maxProblems bounds what is told of one object.
const maxProblems = 8

// refuse notes that an object is not accepted. What is said of it comes before what is
// said of others.
func (a *acceptor) refuse(o *object, reason string, problems []manifest.Problem) {
	own := slices.Clone(problems)
	slices.SortStableFunc(own, func(x, y manifest.Problem) int { return compareBool(!o.has(x.File), !o.has(y.File)) })
	own = own[:min(len(own), maxProblems)]
	for i := range own {
		own[i].File = ""
	}
	a.refused[o.key] = Refused{Object: o.key, Reason: reason, Problems: own}
}

func sorted(set map[string]*object) []*object {
	list := make([]*object, 0, len(set))
	for _, o := range set {
		list = append(list, o)
	}
	slices.SortFunc(list, func(x, y *object) int { return cmp.Compare(x.key, y.key) })
	return list
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
