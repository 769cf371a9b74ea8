// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
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
	case isBound(text):
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

const (
	maxQuantity = 256 // bytes
	maxExponent = 100
)

// isBound reports whether the text is short, with an exponent that is small if it has one.
func isBound(text string) bool {
	if len(text) > maxQuantity {
		return false
	}
	at := strings.LastIndexAny(text, "eE")
	if at < 0 || at == len(text)-1 { // the last is Exa
		return true
	}
	exponent, err := strconv.ParseInt(text[at+1:], 10, 64)
	// What is no number is no quantity. A number beyond int64 is none either.
	return err != nil || -maxExponent <= exponent && exponent <= maxExponent
}
