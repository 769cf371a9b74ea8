// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"math"
	"regexp"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// binaryFunctions are the functions of two values. What CEL charges depends on the overload
// that it has found when it compiled: of a value of any type it has found none.
var binaryFunctions = map[string]func(overload string) binaryFunction{
	operators.Equals:        func(string) binaryFunction { return equality(false) },
	operators.NotEquals:     func(string) binaryFunction { return equality(true) },
	operators.Less:          ordering(func(order types.Int) bool { return order < 0 }),
	operators.LessEquals:    ordering(func(order types.Int) bool { return order <= 0 }),
	operators.Greater:       ordering(func(order types.Int) bool { return order > 0 }),
	operators.GreaterEquals: ordering(func(order types.Int) bool { return order >= 0 }),
	operators.In:            membership,
	operators.Add:           addition,
	overloads.StartsWith:    ofTwoTexts(strings.HasPrefix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.EndsWith:      ofTwoTexts(strings.HasSuffix, func(_, b string) uint64 { return traversal(length(b)) }),
	overloads.Contains:      ofTwoTexts(strings.Contains, func(a, b string) uint64 { return traversal(length(a)) * traversal(length(b)) }),
}

// equality charges for the smaller of both. What cannot be compared is an error of ==, and
// differs for !=.
func equality(negated bool) binaryFunction {
	return func(e *Evaluation, left, right ref.Val) ref.Val {
		if !canCompare(left) || !canCompare(right) || !e.spend(traversal(int(min(sizeIn(left), sizeIn(right))))) {
			return nil
		}
		if isContainer(left) && isContainer(right) && !e.hasTime() {
			return nil
		}
		same := types.Equal(left, right)
		if negated {
			return types.Bool(same != types.True)
		}
		return known(same)
	}
}

// canCompare leaves out what the API server charges otherwise for: quantities and the like.
func canCompare(v ref.Val) bool {
	switch v.(type) {
	case types.String, types.Int, types.Bool, types.Double, types.Null, traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// isContainer reports whether v may have any number of parts: to compare it costs its size,
// however much is in what is in it.
func isContainer(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// fewElements are looked through in no time.
const fewElements = 100

// sizeIn is what CEL takes for the size of a value.
func sizeIn(v ref.Val) types.Int {
	if sized, ok := v.(traits.Sizer); ok {
		return sized.Size().(types.Int)
	}
	return 1
}

func ordering(holds func(order types.Int) bool) func(string) binaryFunction {
	return func(overload string) binaryFunction {
		texts := strings.HasSuffix(overload, "_string")
		return func(e *Evaluation, left, right ref.Val) ref.Val {
			cost := uint64(1)
			switch left.(type) {
			case types.String:
				if texts {
					cost = traversal(int(min(sizeIn(left), sizeIn(right))))
				}
			case types.Int, types.Double:
			default:
				return nil
			}
			if !e.spend(cost) {
				return nil
			}
			order, ok := left.(traits.Comparer).Compare(right).(types.Int)
			if !ok {
				return nil
			}
			return types.Bool(holds(order))
		}
	}
}

func membership(overload string) binaryFunction {
	return func(e *Evaluation, key, of ref.Val) ref.Val {
		switch of.(type) {
		case traits.Lister, traits.Mapper:
		default:
			return nil
		}
		cost := uint64(1)
		if overload == overloads.InList {
			cost = uint64(sizeIn(of))
		}
		if !e.spend(cost) {
			return nil
		}
		if (sizeIn(of) > fewElements || isContainer(key)) && !e.hasTime() {
			return nil
		}
		return known(of.(traits.Container).Contains(key))
	}
}

func addition(overload string) binaryFunction {
	return func(e *Evaluation, left, right ref.Val) ref.Val {
		cost := uint64(1)
		switch left.(type) {
		case types.String:
			if overload == overloads.AddString {
				cost = traversal(int(sizeIn(left) + sizeIn(right)))
			}
		case types.Int, traits.Lister:
		default:
			return nil
		}
		if !e.spend(cost) {
			return nil
		}
		return known(left.(traits.Adder).Add(right))
	}
}

func ofTwoTexts(holds func(a, b string) bool, cost func(a, b string) uint64) func(string) binaryFunction {
	return func(string) binaryFunction {
		return func(e *Evaluation, left, right ref.Val) ref.Val {
			a, isText := left.(types.String)
			b, areTexts := right.(types.String)
			if !isText || !areTexts || !e.spend(cost(string(a), string(b))) {
				return nil
			}
			return types.Bool(holds(string(a), string(b)))
		}
	}
}

// unaryFunctions are the functions of one value, each of which costs one.
var unaryFunctions = map[string]unaryFunction{
	operators.LogicalNot: func(e *Evaluation, of ref.Val) ref.Val {
		e.cost++
		if truth, ok := of.(types.Bool); ok {
			return !truth
		}
		return nil
	},
	operators.NotStrictlyFalse: func(e *Evaluation, of ref.Val) ref.Val {
		e.cost++
		if _, ok := of.(types.Bool); ok {
			return of
		}
		return nil
	},
	overloads.Size: func(e *Evaluation, of ref.Val) ref.Val {
		e.cost++
		switch of.(type) {
		case types.String, traits.Lister, traits.Mapper:
			return of.(traits.Sizer).Size()
		}
		return nil
	},
}

// matching is matches() with a constant pattern.
func matching(pattern string) unaryFunction {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	each := uint64(math.Ceil(float64(length(pattern)) * common.RegexStringLengthCostFactor))
	return func(e *Evaluation, of ref.Val) ref.Val {
		text, ok := of.(types.String)
		if !ok || !e.spend(traversal(1+length(string(text)))*each) {
			return nil
		}
		return types.Bool(compiled.MatchString(string(text)))
	}
}

// oneOfThem is in with a list of constants, which CEL makes a set of, and does not charge
// for; nil of other lists.
func oneOfThem(list traits.Lister) unaryFunction {
	set := map[ref.Val]struct{}{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if !inSets(element) {
			return nil
		}
		set[element] = struct{}{}
	}
	if len(set) == 0 {
		return nil // CEL does not look at what may be in it
	}
	return func(_ *Evaluation, of ref.Val) ref.Val {
		if !inSets(of) {
			return nil
		}
		_, ok := set[of]
		return types.Bool(ok)
	}
}

func inSets(v ref.Val) bool {
	switch v.(type) {
	case types.String, types.Int:
		return true
	}
	return false
}
