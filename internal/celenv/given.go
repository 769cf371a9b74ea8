// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Given is what the expressions of a policy see besides the review; nil is null.
type Given struct{ Params, Namespace *Object }

// Object is a stored object as expressions see it: params, or the namespace. It is frozen,
// and safe for concurrent use. nil is null.
type Object struct{ value ref.Val }

// NewParams returns the params that raw is, as kube-apiserver has them: as decoded JSON,
// whatever the kind. What is no object is an error to every expression that looks at it.
func NewParams(raw []byte) *Object {
	object, err := decoded(raw)
	if err != nil {
		return &Object{types.WrapErr(fmt.Errorf("failed to prepare params for evaluation: %w", err))}
	}
	return &Object{types.DefaultTypeAdapter.NativeToValue(object.Value())}
}

// NewNamespace returns the namespace that raw is, with what kube-apiserver shows of one
// (CreateNamespaceObject in k8s.io/apiserver/pkg/admission/plugin/cel/condition.go).
func NewNamespace(raw []byte) (*Object, error) {
	object, err := decoded(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to prepare the namespace for evaluation: %w", err)
	}
	parts := []member{{key: "metadata", value: object.only("metadata", "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers")}}
	for _, part := range []string{"spec", "status"} { // a struct is there, empty or not
		parts = append(parts, member{key: part, value: object.only(part, "finalizers", "phase", "conditions")})
	}
	return &Object{newTypedMap(parts)}, nil
}

func decoded(raw []byte) (*typedMap, error) {
	c := converter{piece: usualPiece}
	value, err := c.value(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(*typedMap)
	if !ok {
		return nil, fmt.Errorf("it is no object, but %T", nativeOf(value))
	}
	return object, nil
}

// only returns the members of those names of the part.
func (m *typedMap) only(part string, names ...string) *typedMap {
	var kept []member
	if i := m.place(part); i >= 0 {
		whole, _ := m.members[i].value.(*typedMap)
		for _, name := range names {
			if whole == nil {
				break
			}
			if i := whole.place(name); i >= 0 {
				kept = append(kept, whole.members[i])
			}
		}
	}
	return newTypedMap(kept)
}

func (o *Object) val() ref.Val {
	if o == nil {
		return types.NullValue
	}
	return o.value
}
