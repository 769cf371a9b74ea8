// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// value is what an expression comes to.
type value struct {
	kind   kind
	truth  bool
	number int64
	text   string // borrowed
}

type kind uint8

const (
	unknown kind = iota // CEL knows
	absent              // an error to everything but has()
	null
	boolean
	number
	text
	filled    // one of the objects, with something in it
	container // a map or a list of which nothing but its presence is read
	other     // something that is neither absent nor null
)

func boolOf(b bool) value  { return value{kind: boolean, truth: b} }
func numberOf(n int) value { return value{kind: number, number: int64(n)} }

// maxText is the longest string that predicates look at: CEL charges one for its size,
// and so do they, however long it takes to count.
const maxText = 64 << 10

func textOf(s string) value {
	if len(s) > maxText {
		return value{kind: other}
	}
	return value{kind: text, text: s}
}

type operation func(v *Variables, left, right value) value

// operations are those of two operands that are no collections.
var operations = map[string]operation{
	operators.Equals:        equals,
	operators.NotEquals:     differs,
	operators.Less:          ofNumbers(func(a, b int64) bool { return a < b }),
	operators.LessEquals:    ofNumbers(func(a, b int64) bool { return a <= b }),
	operators.Greater:       ofNumbers(func(a, b int64) bool { return a > b }),
	operators.GreaterEquals: ofNumbers(func(a, b int64) bool { return a >= b }),
	overloads.StartsWith:    ofTexts(strings.HasPrefix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.EndsWith:      ofTexts(strings.HasSuffix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.Contains:      ofTexts(strings.Contains, func(a, b string) uint64 { return traversal(length(a)) * traversal(length(b)) }),
}

// equals compares with null, or two values of one kind.
func equals(v *Variables, left, right value) value {
	known := left.kind == null || right.kind == null || left.kind == right.kind && left.kind <= text
	size := min(left.size(), right.size())
	if !known || size < 0 || !v.spend(traversal(size)) {
		return value{}
	}
	return boolOf(left == right)
}

// size is what CEL takes for the size of a value that is compared; negative: CEL knows.
func (v value) size() int {
	switch v.kind {
	case null, boolean, number, filled:
		return 1
	case text:
		return length(v.text)
	default:
		return -1
	}
}

func differs(v *Variables, left, right value) value {
	same := equals(v, left, right)
	if same.kind == boolean {
		same.truth = !same.truth
	}
	return same
}

func ofNumbers(holds func(a, b int64) bool) operation {
	return func(v *Variables, left, right value) value {
		if left.kind != number || right.kind != number || !v.spend(1) {
			return value{}
		}
		return boolOf(holds(left.number, right.number))
	}
}

func ofTexts(holds func(a, b string) bool, cost func(a, b string) uint64) operation {
	return func(v *Variables, left, right value) value {
		if left.kind != text || right.kind != text || !v.spend(cost(left.text, right.text)) {
			return value{}
		}
		return boolOf(holds(left.text, right.text))
	}
}

// length is in code points.
func length(s string) int { return utf8.RuneCountInString(s) }

// traversal is what CEL charges for going over so many code points.
func traversal(size int) uint64 {
	return uint64(math.Ceil(float64(size) * common.StringTraversalCostFactor))
}
