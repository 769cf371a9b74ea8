// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// unknownKind is the error of merging into an object of whose kind nothing is known.
type unknownKind struct{ schema.GroupVersionKind }

func (k *unknownKind) Error() string {
	return fmt.Sprintf("Resource kind %s not found. There can be a delay between when CustomResourceDefinitions are created and when they are available.", k.GroupVersionKind)
}

// mergeError is the error of a merge. It may quote the object.
type mergeError struct{ err error }

func (e *mergeError) Error() string { return "error applying patch: " + e.err.Error() }

func (e *mergeError) Unwrap() error { return e.err }

// kindOf is what an object of the review is, as the API server has converted it.
func kindOf(r *codec.Review) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: string(r.Kind.Group), Version: string(r.Kind.Version), Kind: string(r.Kind.Kind)}
}

// merge returns the operations by which an apply configuration becomes part of an object, as
// kube-apiserver merges it (k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go):
// nothing is removed, and what is atomic cannot be said.
func merge(object, configuration []byte, kind schema.GroupVersionKind) ([]byte, error) {
	of, ok := policyschema.BuiltIn().Of(kind)
	if !ok {
		return nil, &unknownKind{kind}
	}
	var live, said map[string]any
	if err := utiljson.Unmarshal(object, &live); err != nil {
		return nil, &mergeError{err}
	}
	if err := utiljson.Unmarshal(configuration, &said); err != nil {
		return nil, &mergeError{err}
	}
	for _, key := range []string{"apiVersion", "kind"} { // which stay what they are
		delete(said, key)
		if is, ok := live[key]; ok {
			said[key] = is
		}
	}
	merged, err := mergeTyped(of, live, said)
	if err != nil {
		return nil, &mergeError{err}
	}
	return jsonpatch.Diff(nil, live, merged)
}

func mergeTyped(of typed.ParseableType, live, said map[string]any) (map[string]any, error) {
	configuration, err := of.FromUnstructured(said)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if atomics := findAtomics(nil, configuration.Schema(), configuration.TypeRef(), configuration.AsValue()); len(atomics) > 0 {
		slices.Sort(atomics)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(atomics, ", "))
	}
	object, err := of.FromUnstructured(live, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := object.Merge(configuration)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	made, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("failed to convert typed object to object: it is no object")
	}
	return made, nil
}

// findAtomics returns the paths of the lists, maps and structs of a value that would be
// replaced whole.
func findAtomics(path fieldpath.Path, s *smd.Schema, at smd.TypeRef, v value.Value) (atomics []string) {
	a, ok := s.Resolve(at)
	switch {
	case !ok:
	case v.IsMap() && a.Map != nil:
		if a.Map.ElementRelationship == smd.Atomic {
			atomics = append(atomics, path.String())
		}
		v.AsMap().Iterate(func(key string, of value.Value) bool {
			if field, ok := a.Map.FindField(key); ok {
				atomics = append(atomics, findAtomics(append(path.Copy(), fieldpath.PathElement{FieldName: &key}), s, field.Type, of)...)
			}
			return true
		})
	case v.IsList() && a.List != nil:
		if a.List.ElementRelationship == smd.Atomic {
			atomics = append(atomics, path.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			atomics = append(atomics, findAtomics(append(path.Copy(), fieldpath.PathElement{Index: &i}), s, a.List.ElementType, list.At(i))...)
		}
	}
	return atomics
}
