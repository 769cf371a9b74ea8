// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Type is the type of the objects of one kind.
type Type struct{ parseable typed.ParseableType }

// Merge returns the object live with a configuration as a part of it, as kube-apiserver
// merges it (k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go): nothing is
// removed, and what is atomic cannot be said. Both have the same apiVersion and kind. The
// error may quote the object.
func (t Type) Merge(live, said map[string]any) (map[string]any, error) {
	configuration, err := t.parseable.FromUnstructured(said)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if atomics := findAtomics(nil, configuration.Schema(), configuration.TypeRef(), configuration.AsValue()); len(atomics) > 0 {
		slices.Sort(atomics)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(atomics, ", "))
	}
	object, err := t.parseable.FromUnstructured(live, typed.AllowDuplicates)
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
