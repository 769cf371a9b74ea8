// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"math"
	"regexp"

	"github.com/google/cel-go/common"
)

// A predicate is an expression of the common forms, evaluated over the scanned review
// without CEL. It says what CEL would say and charges what CEL would charge, or it says
// that it does not know: of anything absent, of another type than meant, or written
// with escapes, the value or the error is CEL's to find.
type predicate interface{ eval(v *Variables) value }

// decide returns what a predicate comes to, if it knows.
func decide(p predicate, v *Variables) (known result, ok bool) {
	if p == nil {
		return result{}, false
	}
	v.spent = 0
	truth := p.eval(v)
	return result{holds: truth.truth, cost: v.spent}, truth.kind == boolean
}

// maxSpent is what a predicate may cost, in units of CEL: well below 0.1 ms. What
// costs more is left to CEL, which watches the limit of an expression and the
// deadline. Typical conditions cost 10.
const maxSpent = 1000

// spend charges what CEL charges, before the work is done. It returns false if
// that is too much for a predicate.
func (v *Variables) spend(cost uint64) bool {
	v.spent += min(cost, maxSpent+1) // which cannot overflow
	return v.spent <= maxSpent
}

// read is the value of an operand. Each step of its path costs one.
type read struct {
	of   operand
	cost uint64
}

func (r read) eval(v *Variables) value {
	if !v.spend(r.cost) {
		return value{}
	}
	found := r.of.read(v)
	if found.kind == absent {
		return value{}
	}
	if n := len(found.text); n > usualLength {
		if n > maxScanned-v.scanned {
			return value{}
		}
		v.scanned += n // its code points are counted, for which CEL may charge one
	}
	return found
}

// usualLength is how many bytes a string has at most that is not worth counting.
const usualLength = 256

// presence is has(): absent is false.
type presence read

func (p presence) eval(v *Variables) value {
	if !v.spend(p.cost) {
		return value{}
	}
	found := p.of.read(v)
	if found.kind == unknown {
		return value{}
	}
	return boolOf(found.kind != absent)
}

type literal value

func (l literal) eval(*Variables) value { return value(l) }

type not struct{ of predicate }

func (n not) eval(v *Variables) value {
	of := n.of.eval(v)
	if of.kind != boolean || !v.spend(1) {
		return value{}
	}
	return boolOf(!of.truth)
}

// either is || if decisive is true, and && if it is false: what the left side
// decides, the right side is not asked about.
type either struct {
	decisive    bool
	left, right predicate
}

func (e either) eval(v *Variables) value {
	left := e.left.eval(v)
	if left.kind != boolean {
		return value{} // the right side may decide, but what it takes to know is CEL's
	}
	if left.truth == e.decisive {
		return left
	}
	if right := e.right.eval(v); right.kind == boolean {
		return right
	}
	return value{} // an error of CEL's, unless it is a bool that only CEL knows
}

// binary is an operation of two values.
type binary struct {
	do          operation
	left, right predicate
}

func (b binary) eval(v *Variables) value { return b.do(v, b.left.eval(v), b.right.eval(v)) }

// matches is matches() with a constant pattern.
type matches struct {
	of      predicate
	pattern *regexp.Regexp
	cost    uint64 // for each ten code points of what is matched
}

func (m matches) eval(v *Variables) value {
	of := m.of.eval(v)
	if of.kind != text || !v.spend(uint64(math.Ceil((1+float64(length(of.text)))*common.StringTraversalCostFactor))*m.cost) {
		return value{}
	}
	return boolOf(m.pattern.MatchString(of.text))
}

// oneOf is in with a list of constant strings, which CEL does not charge for.
type oneOf struct {
	of   predicate
	list map[string]struct{}
}

func (o oneOf) eval(v *Variables) value {
	of := o.of.eval(v)
	if of.kind != text {
		return value{}
	}
	_, ok := o.list[of.text]
	return boolOf(ok)
}

// within is in with a collection.
type within struct {
	key  predicate
	in   collection
	cost uint64 // of the path of the collection
}

func (w within) eval(v *Variables) value {
	key := w.key.eval(v)
	if key.kind != text || !v.spend(w.cost+w.in.cost(v)) {
		return value{}
	}
	found := w.in.find(v, key.text)
	if found.kind == unknown {
		return value{}
	}
	return boolOf(found.kind != absent)
}

// size is size() of a collection, sizeOfText of a string.
type (
	size struct {
		of   collection
		cost uint64
	}
	sizeOfText struct{ of predicate }
)

func (s size) eval(v *Variables) value {
	if !v.spend(s.cost + 1) {
		return value{}
	}
	return s.of.count(v)
}

func (s sizeOfText) eval(v *Variables) value {
	of := s.of.eval(v)
	if of.kind != text || !v.spend(1) {
		return value{}
	}
	return numberOf(length(of.text))
}
