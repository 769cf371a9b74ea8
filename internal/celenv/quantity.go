// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-dispatcher/dispatcher/internal/quantity"
)

// boundQuantities has quantity and isQuantity fail over a text such as 1e999999999, which a
// user may write: to compare what it stands for takes minutes and gigabytes, costs next to
// nothing in units of CEL, and cannot be interrupted.
func boundQuantities(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 1 {
		return i, nil
	}
	switch call.OverloadID() {
	case "string_to_quantity":
		return boundQuantity{call, func(text string) ref.Val {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return types.WrapErr(err)
			}
			return apiservercel.Quantity{Quantity: &q}
		}}, nil
	case "is_quantity_string":
		return boundQuantity{call, func(text string) ref.Val {
			_, err := resource.ParseQuantity(text)
			return types.Bool(err == nil)
		}}, nil
	}
	return i, nil
}

// boundQuantity is a call of a function of a text that should be a quantity.
type boundQuantity struct {
	interpreter.InterpretableCall

	of func(text string) ref.Val
}

var errUnbound = errors.New("the quantity is too large, too small or too long to be computed with")

// Exec implements interpreter.InterpretableV2.
func (b boundQuantity) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := b.Args()[0].Exec(frame)
	if types.IsUnknownOrError(value) {
		return value
	}
	text, ok := value.Value().(string)
	switch {
	case !ok:
		value = types.MaybeNoSuchOverloadErr(value)
	case quantity.IsBound(text):
		value = b.of(text)
	default:
		value = types.WrapErr(errUnbound)
	}
	return types.LabelErrNode(b.ID(), value)
}

// Eval implements interpreter.Interpretable.
func (b boundQuantity) Eval(a interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(a))
}
