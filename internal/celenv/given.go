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
	return &Object{types.DefaultTypeAdapter.NativeToValue(object)}
}

// NewNamespace returns the namespace that raw is, with what kube-apiserver shows of one
// (CreateNamespaceObject in k8s.io/apiserver/pkg/admission/plugin/cel/condition.go).
func NewNamespace(raw []byte) (*Object, error) {
	object, err := decoded(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to prepare the namespace for evaluation: %w", err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	shown := map[string]any{"metadata": only(metadata, "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers")}
	for _, part := range []string{"spec", "status"} {
		value, _ := object[part].(map[string]any)
		shown[part] = only(value, "finalizers", "phase", "conditions") // a struct is there, empty or not
	}
	return &Object{typedAdapter{}.NativeToValue(shown)}, nil
}

func decoded(raw []byte) (map[string]any, error) {
	c := converter{piece: usualPiece}
	value, err := c.value(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no object, but %T", value)
	}
	return object, nil
}

// only returns the members of those names.
func only(object map[string]any, names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, ok := object[name]; ok {
			kept[name] = value
		}
	}
	return kept
}

func (o *Object) val() ref.Val {
	if o == nil {
		return types.NullValue
	}
	return o.value
}
