// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// isTyped reports whether an object of a group is evaluated as one of a built-in kind. kube-apiserver has Go types for its own
// kinds, and since 1.37 it evaluates them as they are: their maps and lists have errors
// where those of custom resources, which are decoded JSON, have a result
// (k8s.io/apiserver/pkg/cel/common/valuesschemalesstyped.go).
func isTyped(group []byte) bool {
	switch string(group) {
	case "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
		"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
		"imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	}
	return false
}

// typedMap is a map, or a struct, of a built-in kind. Containers in it may be converted
// when the first expression asks for them: most look at a small part of an object.
type typedMap struct {
	members []member
	places  map[string]int // of the members, where they are many
	of      *Variables     // whose object it is; nil: all of it is converted
	depth   int
	shares  bool // the text of the object
}

// member is a member of a JSON object.
type member struct {
	key   string
	value ref.Val // nil: not yet converted
	raw   string  // what it is converted from
}

// at returns the value of the member at a place. Who evaluates the object's Variables has
// them to itself.
func (m *typedMap) at(i int) ref.Val {
	at := &m.members[i]
	if at.value == nil {
		c := converter{deadline: m.of.deadline, piece: usualPiece, of: m.of, depth: m.depth + 1, shares: m.shares}
		value, err := c.text(at.raw)
		if err != nil {
			return m.of.unprepared(err)
		}
		at.value = value
	}
	return at.value
}

// few is up to how many members are found faster by looking at each.
const few = 16

// newTypedMap returns the map of members, which it keeps. Of two with one key the later
// counts.
func newTypedMap(members []member) *typedMap {
	m := &typedMap{members: members[:0]}
	if len(members) > few {
		m.places = make(map[string]int, len(members))
	}
	for _, next := range members {
		i := m.place(next.key)
		if i >= 0 {
			m.members[i] = next
			continue
		}
		if m.places != nil {
			m.places[next.key] = len(m.members)
		}
		m.members = append(m.members, next)
	}
	return m
}

// place is where the member with a key is; -1: there is none.
func (m *typedMap) place(key string) int {
	if m.places != nil {
		if i, ok := m.places[key]; ok {
			return i
		}
		return -1
	}
	for i := range m.members {
		if m.members[i].key == key {
			return i
		}
	}
	return -1
}

// whole returns an object of which nothing waits any more, so that it is frozen; nil: it
// could not be converted.
func whole(v ref.Val) ref.Val {
	switch of := v.(type) {
	case *typedMap:
		for i := range of.members {
			if whole(of.at(i)) == nil {
				return nil
			}
		}
	case *typedList:
		for i := range of.Size().(types.Int) {
			if whole(of.Get(i)) == nil {
				return nil
			}
		}
	case *types.Err:
		return nil
	}
	return v
}

// ConvertToNative implements ref.Val.
func (m *typedMap) ConvertToNative(to reflect.Type) (any, error) {
	return types.DefaultTypeAdapter.NativeToValue(m.Value()).ConvertToNative(to)
}

// ConvertToType implements ref.Val.
func (m *typedMap) ConvertToType(to ref.Type) ref.Val {
	if to == types.MapType {
		return m
	}
	return types.DefaultTypeAdapter.NativeToValue(m.Value()).ConvertToType(to)
}

// Type implements ref.Val.
func (m *typedMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (m *typedMap) Value() any {
	native := make(map[string]any, len(m.members))
	for i := range m.members {
		native[m.members[i].key] = nativeOf(m.at(i))
	}
	return native
}

// nativeOf is a value as utiljson decodes it.
func nativeOf(v ref.Val) any {
	switch v := v.(type) {
	case types.Null:
		return nil
	case *typedList:
		native := make([]any, v.Size().(types.Int))
		for i := range native {
			native[i] = nativeOf(v.Get(types.Int(i)))
		}
		return native
	}
	return v.Value()
}

// Size implements traits.Sizer.
func (m *typedMap) Size() ref.Val { return types.Int(len(m.members)) }

// Iterator implements traits.Iterable: it is over the keys.
func (m *typedMap) Iterator() traits.Iterator {
	keys := make([]ref.Val, len(m.members))
	for i := range m.members {
		keys[i] = types.String(m.members[i].key)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

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
	for i := range m.members {
		another, found := to.Find(types.String(m.members[i].key))
		if !found {
			return types.False
		}
		switch result := m.at(i).Equal(another); {
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
	text, ok := key.(types.String)
	if !ok {
		return types.ValOrErr(key, "unsupported map key type: %T", key), false
	}
	if i := m.place(string(text)); i >= 0 {
		return m.at(i), true
	}
	return nil, false
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

func newTypedList(elements []ref.Val) *typedList {
	return &typedList{types.NewRefValList(types.DefaultTypeAdapter, elements)}
}

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
