// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// variablesValue is variables as expressions see them: a map that evaluates what it is
// asked for. It is what kube-apiserver's lazy map is, and notes who asks.
type variablesValue struct{ of *Evaluation }

var _ traits.Mapper = variablesValue{}

var variablesTypeValue = types.NewObjectType(variablesType, traits.IndexerType|traits.FieldTesterType|traits.IterableType)

// Find implements traits.Mapper.
func (m variablesValue) Find(key ref.Val) (ref.Val, bool) {
	text, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name := string(text)
	if strings.Contains(name, "__") { // which no name has that is not escaped
		if name, ok = apiservercel.Unescape(name); !ok {
			return nil, false
		}
	}
	i, ok := m.of.scope.indexes[name]
	if !ok {
		return nil, false
	}
	return m.of.variable(i), true
}

// Get implements traits.Indexer.
func (m variablesValue) Get(key ref.Val) ref.Val {
	if value, found := m.Find(key); found {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (m variablesValue) Contains(key ref.Val) ref.Val {
	value, found := m.Find(key)
	if value != nil && types.IsUnknownOrError(value) {
		return value
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (m variablesValue) Size() ref.Val { return types.Int(len(m.of.scope.variables)) }

// Iterator implements traits.Iterable. No expression that compiles iterates.
func (m variablesValue) Iterator() traits.Iterator {
	names := make([]string, len(m.of.scope.variables))
	for i, x := range m.of.scope.variables {
		names[i] = x.name
	}
	return types.NewStringList(types.DefaultTypeAdapter, names).Iterator()
}

// ConvertToNative implements ref.Val.
func (m variablesValue) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("disallowed conversion from %q to %q", variablesType, to.Name())
}

// ConvertToType implements ref.Val.
func (m variablesValue) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case ref.Type(variablesTypeValue):
		return m
	case types.TypeType:
		return variablesTypeValue
	}
	return types.NewErr("disallowed conversion from %q to %q", variablesType, to.TypeName())
}

// Equal implements ref.Val.
func (m variablesValue) Equal(other ref.Val) ref.Val {
	if o, ok := other.(variablesValue); ok {
		return types.Bool(m == o)
	}
	return types.MaybeNoSuchOverloadErr(other)
}

// Type implements ref.Val.
func (m variablesValue) Type() ref.Type { return variablesTypeValue }

// Value implements ref.Val.
func (m variablesValue) Value() any { return types.NoSuchOverloadErr() }
