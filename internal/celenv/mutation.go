// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// The types that expressions of mutations have besides, as kube-apiserver calls them.
var (
	operationsType    = cel.ListType(types.NewObjectType(mutation.JSONPatchTypeName))
	configurationType = types.NewObjectType(mutation.ObjectTypeName)
)

// withMutations declares what only the expressions of mutations have: JSONPatch, Object and
// the types of its fields, and jsonpatch.escapeKey.
func withMutations(env *cel.Env) (*cel.Env, error) {
	return env.Extend(common.ResolverEnvOption(mutationTypes{}), library.JSONPatch())
}

// mutationTypes are kube-apiserver's, whose objects show what is in them.
type mutationTypes struct{}

// Resolve implements common.TypeResolver.
func (mutationTypes) Resolve(name string) (common.ResolvedType, bool) {
	resolved, ok := (&mutation.DynamicTypeResolver{}).Resolve(name)
	if of, isObject := resolved.(*dynamic.ObjectType); isObject {
		return objectType{of}, true
	}
	return resolved, ok
}

type objectType struct{ *dynamic.ObjectType }

// Val implements common.ResolvedType.
func (t objectType) Val(fields map[string]ref.Val) ref.Val {
	return &objectValue{dynamic.NewObjectVal(t.Type(), fields), fields}
}

// objectValue is an Object, or a part of one. Unlike that of kube-apiserver it is not
// converted anew at each level by whoever looks at it.
type objectValue struct {
	*dynamic.ObjectVal
	fields map[string]ref.Val
}

// Value implements ref.Val, for who selects a field.
func (v *objectValue) Value() any {
	fields := make(map[string]any, len(v.fields))
	for name, value := range v.fields {
		fields[name] = value
	}
	return fields
}

var (
	_ traits.Indexer     = (*objectValue)(nil)
	_ traits.FieldTester = (*objectValue)(nil)
)

// Get implements traits.Indexer, for who selects a field of a field.
func (v *objectValue) Get(index ref.Val) ref.Val {
	name, _ := index.(types.String)
	if value, ok := v.fields[string(name)]; ok {
		return value
	}
	return types.ValOrErr(index, "no such key: %v", index)
}

// IsSet implements traits.FieldTester.
func (v *objectValue) IsSet(field ref.Val) ref.Val {
	name, _ := field.(types.String)
	_, ok := v.fields[string(name)]
	return types.Bool(ok)
}

// Equal implements ref.Val.
func (v *objectValue) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*objectValue); ok {
		return v.ObjectVal.Equal(o.ObjectVal)
	}
	return types.False
}

// Next returns the evaluation of the same scope over the same review, in the place of e:
// with another object, unless that is nil, and with what is given. It is to be used where e
// may be.
func (e *Evaluation) Next(object *codec.Object, given Given) *Evaluation {
	v := e.variables
	if object != nil {
		v = &Variables{Input: v.Input}
		v.oldObject, v.request, v.cluster, v.matched = whole(e.variables.oldObject), e.variables.request, e.variables.cluster, e.variables.matched
		v.Object = object
		v.access = e.variables.accesses() // what one asks is answered for all
	}
	next := newEvaluation(v, e.scope, given, e.deadline)
	next.plain = e.plain
	if !e.deadline.IsZero() {
		next.ctx = e.until() // which ends with the first of them
	}
	return next
}

// Operations returns the JSON patch that an expression of a mutation came to, as JSON of at
// most limit bytes, in the words of kube-apiserver where there is none. ErrInterrupted says
// that the deadline came before.
func (e *Evaluation) Operations(v Value, limit int) ([]byte, error) {
	list, ok := v.value.(interface {
		Size() ref.Val
		Get(ref.Val) ref.Val
	})
	if !ok {
		return nil, errors.New("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	w := &valueWriter{out: []byte{'['}, limit: limit, deadline: e.deadline}
	size, _ := list.Size().(types.Int)
	for i := range size {
		op, ok := list.Get(i).(*mutation.JSONPatchVal)
		if !ok {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of %T", list.Get(i))
		}
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.operation(op); err != nil {
			return nil, err
		}
	}
	return append(w.out, ']'), nil
}

// Configuration returns the apply configuration that an expression of a mutation came to,
// as Operations does.
func (e *Evaluation) Configuration(v Value, limit int) ([]byte, error) {
	object, ok := v.value.(*objectValue)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %s", v.Type())
	}
	w := &valueWriter{limit: limit, deadline: e.deadline}
	err := w.mismatch(w.value(object, place{expected: mutation.ObjectTypeName}))
	return w.out, err
}

func (w *valueWriter) operation(op *mutation.JSONPatchVal) error {
	w.member('{', "op")
	w.text(op.Op)
	w.member(',', "path")
	w.text(op.Path)
	if op.From != "" {
		w.member(',', "from")
		w.text(op.From)
	}
	if op.Val != nil {
		w.member(',', "value")
		expected := ""
		if object, ok := op.Val.(*objectValue); ok {
			expected = object.Type().TypeName()
		}
		if err := w.whole(op.Val, expected); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return w.check(1)
}

// whole writes a value, and makes sure that the types of the objects in it are called as the
// fields that they are in; with "" they may be called anything.
func (w *valueWriter) whole(v ref.Val, expected string) error {
	w.mismatches = nil
	err := w.value(v, place{expected: expected})
	switch {
	case err == nil, errors.Is(err, ErrInterrupted), errors.Is(err, errTooLarge):
	default:
		err = fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
	}
	return w.mismatch(err)
}

// mismatch returns what is wrong with the names of types, or else err.
func (w *valueWriter) mismatch(err error) error {
	if len(w.mismatches) == 0 || errors.Is(err, ErrInterrupted) {
		return err
	}
	slices.Sort(w.mismatches)
	return fmt.Errorf("type mismatch: %s", strings.Join(w.mismatches, "\n"))
}
