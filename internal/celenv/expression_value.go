// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Value is what an expression came to.
type Value struct{ value ref.Val }

// True reports whether it is true.
func (v Value) True() bool { return v.value == types.True }

// Text returns a string, which keeps nothing of the object; ok is false for everything
// else.
func (v Value) Text() (text string, ok bool) {
	if v.value == nil {
		return "", false
	}
	text, ok = v.value.Value().(string)
	return strings.Clone(text), ok
}

// IsNull reports whether it is null.
func (v Value) IsNull() bool { return v.value == types.NullValue }

// Type names its type.
func (v Value) Type() string { return v.value.Type().TypeName() }

// JSON returns it as JSON, or why there is none.
func (v Value) JSON() string {
	if types.IsError(v.value) {
		return fmt.Sprint(v.value)
	}
	native, err := v.value.ConvertToNative(types.JSONValueType)
	if err != nil {
		return v.Type()
	}
	text, err := json.Marshal(native)
	if err != nil {
		return v.Type()
	}
	return string(text)
}

// Named is a variable and what it came to.
type Named struct {
	Name string
	Value
}

// Known returns the variables that somebody has asked for, in the order of the policy.
func (e *Evaluation) Known() (list []Named) {
	for i := range e.known {
		if e.known[i].value != nil {
			list = append(list, Named{e.scope.variables[i].name, Value{e.known[i].value}})
		}
	}
	return list
}
