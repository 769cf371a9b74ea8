// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// foldPlan is a loop that comes to a bool or a number: all(), exists(), exists_one().
type foldPlan struct {
	over                    plan
	element, sum            int // where they are among the locals
	begin                   ref.Val
	condition, step, result plan
}

func (p *foldPlan) eval(e *Evaluation) ref.Val {
	elements := iteratorOf(p.over.eval(e))
	if elements == nil {
		return nil
	}
	*e.local(p.sum) = p.begin
	for elements.HasNext() == types.True {
		*e.local(p.element) = elements.Next()
		condition, ok := p.condition.eval(e).(types.Bool)
		if !ok {
			return nil
		}
		if !condition {
			break
		}
		sum := p.step.eval(e)
		if sum == nil || !e.goesOn() {
			return nil
		}
		*e.local(p.sum) = sum
	}
	return p.result.eval(e)
}

// collectPlan is a loop that comes to a list: map(), filter().
type collectPlan struct {
	over      plan
	element   int  // where it is among the locals
	condition plan // nil: every element
	value     plan
	adapter   types.Adapter
}

// What CEL charges for a list that is made, and for each element added to one: for the list,
// for one with the element, and for their sum.
const (
	costOfList    = common.ListCreateBaseCost
	costOfElement = 1 + costOfList + 1
)

func (p *collectPlan) eval(e *Evaluation) ref.Val {
	elements := iteratorOf(p.over.eval(e))
	if elements == nil {
		return nil
	}
	var values []ref.Val
	for elements.HasNext() == types.True {
		*e.local(p.element) = elements.Next()
		holds := true
		if p.condition != nil {
			condition, ok := p.condition.eval(e).(types.Bool)
			if !ok {
				return nil
			}
			holds = bool(condition)
		}
		if holds {
			value := p.value.eval(e)
			if value == nil || !e.spend(costOfElement) {
				return nil
			}
			values = append(values, value)
		}
		if !e.goesOn() {
			return nil
		}
	}
	e.cost++
	return types.NewRefValList(p.adapter, values)
}

// iteratorOf is over the elements of a list, or the keys of a map.
func iteratorOf(v ref.Val) traits.Iterator {
	switch v := v.(type) {
	case traits.Mapper:
		return v.Iterator()
	case traits.Lister:
		return v.Iterator()
	}
	return nil
}
