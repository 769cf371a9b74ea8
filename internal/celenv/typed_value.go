// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// adapterOf returns what makes values of the objects of a group. kube-apiserver has Go
// types for its own kinds, and since 1.37 it evaluates them as they are: their maps and
// lists have errors where those of custom resources, which are decoded JSON, have a
// result (k8s.io/apiserver/pkg/cel/common/valuesschemalesstyped.go).
func adapterOf(group []byte) types.Adapter {
	switch string(group) {
	case "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
		"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
		"imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return typedAdapter{}
	}
	return types.DefaultTypeAdapter
}

// typedAdapter makes values of an object of a built-in kind, and of what is in it.
type typedAdapter struct{}

// NativeToValue implements types.Adapter.
func (a typedAdapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return &typedMap{types.NewStringInterfaceMap(a, v)}
	case []any:
		return &typedList{types.NewDynamicList(a, v)}
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// typedMap is a map, or a struct, of a built-in kind.
type typedMap struct{ traits.Mapper }

// Equal implements ref.Val. What is no map cannot be compared with one.
func (m *typedMap) Equal(other ref.Val) ref.Val {
	to, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if m.Size() != to.Size() {
		return types.False
	}
	_, typed := to.(*typedMap)
	var equal ref.Val = types.True
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		value, _ := m.Mapper.Find(key)
		another, found := to.Find(key)
		if !found {
			return types.False
		}
		switch result := value.Equal(another); {
		case result == types.True:
		case types.IsError(result) && !typed:
			// A struct has the first difference that it comes across, in no order.
			equal = result
		case equal == types.True:
			equal = types.False
		}
	}
	return equal
}

// Find implements traits.Mapper. There are no other keys than strings.
func (m *typedMap) Find(key ref.Val) (ref.Val, bool) {
	if _, ok := key.(types.String); !ok {
		return types.ValOrErr(key, "unsupported map key type: %T", key), false
	}
	return m.Mapper.Find(key)
}

// Get implements traits.Indexer.
func (m *typedMap) Get(key ref.Val) ref.Val {
	value, found := m.Find(key)
	if found {
		return value
	}
	return types.ValOrErr(value, "no such key: %v", key)
}

// Contains implements traits.Container.
func (m *typedMap) Contains(key ref.Val) ref.Val {
	value, found := m.Find(key)
	if types.IsError(value) {
		return value
	}
	return types.Bool(found)
}

// typedList is a list of a built-in kind.
type typedList struct{ traits.Lister }

// Equal implements ref.Val. What is no list cannot be compared with one; elements that
// cannot be compared are not equal.
func (l *typedList) Equal(other ref.Val) ref.Val {
	to, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	size := l.Size().(types.Int)
	if size != to.Size() {
		return types.False
	}
	for i := range size {
		if l.Lister.Get(i).Equal(to.Get(i)) != types.True {
			return types.False
		}
	}
	return types.True
}

// Get implements traits.Indexer. 1.0 and 1u are no indexes.
func (l *typedList) Get(index ref.Val) ref.Val {
	if _, ok := index.(types.Int); !ok {
		return types.ValOrErr(index, "unsupported index type: %T", index)
	}
	return l.Lister.Get(index)
}
