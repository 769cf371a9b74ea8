// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// atoms turns schemas into types that are merged by, as kube-apiserver does
// (k8s.io/kube-openapi/pkg/schemaconv/openapi.go).
type atoms struct {
	preserve bool // fields that are not declared are kept, here and below
}

// The types of what is of any type, which every schema has.
var (
	untypedName, deducedName = "__untyped_atomic_", "__untyped_deduced_"
	untypedScalar            = smd.Untyped

	untypedAtom = smd.Atom{
		Scalar: &untypedScalar,
		List:   &smd.List{ElementType: smd.TypeRef{NamedType: &untypedName}, ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: smd.TypeRef{NamedType: &untypedName}, ElementRelationship: smd.Atomic},
	}
	deducedAtom = smd.Atom{
		Scalar: &untypedScalar,
		List:   &smd.List{ElementType: smd.TypeRef{NamedType: &untypedName}, ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: smd.TypeRef{NamedType: &deducedName}, ElementRelationship: smd.Separable},
	}
)

const (
	quantity     = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	rawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension"
	objectMeta   = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// named returns the types of schemas by their names, of which those that are only
// another's name are none.
func named(all map[string]*node) []smd.TypeDef {
	types := make([]smd.TypeDef, 0, len(all)+2)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		switch {
		case n.ref != "" && n.typ == "" && n.properties == nil:
		case name == quantity:
			types = append(types, smd.TypeDef{Name: name, Atom: smd.Atom{Scalar: &untypedScalar}})
		case name == rawExtension:
			types = append(types, smd.TypeDef{Name: name, Atom: untypedAtom})
		default:
			types = append(types, smd.TypeDef{Name: name, Atom: atoms{}.of(n)})
		}
	}
	return types
}

// common are the types of what is of any type.
func common() []smd.TypeDef {
	return []smd.TypeDef{{Name: untypedName, Atom: untypedAtom}, {Name: deducedName, Atom: deducedAtom}}
}

func (a atoms) of(n *node) smd.Atom {
	a.preserve = a.preserve || n.preserve
	switch n.typ {
	case "":
		return smd.Atom{Scalar: &untypedScalar, List: a.list(n), Map: a.object(n)}
	case "object":
		return smd.Atom{Map: a.object(n)}
	case "array":
		return smd.Atom{List: a.list(n)}
	}
	scalar := scalarOf(n)
	return smd.Atom{Scalar: &scalar}
}

func scalarOf(n *node) smd.Scalar {
	switch {
	case n.typ == "integer", n.typ == "number":
		return smd.Numeric
	case n.typ == "boolean":
		return smd.Boolean
	case n.format == "", n.format == "byte":
		return smd.String
	}
	return smd.Untyped
}

// ref returns the type of a part: a name, or the type itself.
func (a atoms) ref(n *node) smd.TypeRef {
	if n.ref == "" {
		return smd.TypeRef{Inlined: a.of(n)}
	}
	ref := smd.TypeRef{NamedType: &n.ref}
	if r := relationship(n); r != "" {
		ref.ElementRelationship = &r
	}
	return ref
}

func relationship(n *node) smd.ElementRelationship {
	switch n.mapType {
	case "atomic":
		return smd.Atomic
	case "granular":
		return smd.Separable
	}
	return ""
}

func (a atoms) object(n *node) *smd.Map {
	m := &smd.Map{ElementRelationship: relationship(n)}
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		property := n.properties[name]
		m.Fields = append(m.Fields, smd.StructField{Name: name, Type: a.ref(property), Default: property.value})
	}
	switch {
	case n.additional != nil:
		m.ElementType = a.ref(n.additional)
	case n.closed:
	case n.others, a.preserve, len(n.properties) == 0:
		m.ElementType = smd.TypeRef{NamedType: &deducedName}
	}
	return m
}

func (a atoms) list(n *node) *smd.List {
	l := &smd.List{ElementRelationship: smd.Atomic, ElementType: smd.TypeRef{NamedType: &untypedName}}
	if n.items != nil {
		l.ElementType = a.ref(n.items)
	}
	switch {
	case n.list == "map":
		l.ElementRelationship, l.Keys = smd.Associative, n.keys
	case n.list == "set":
		l.ElementRelationship = smd.Associative
	case n.list == "" && (n.strategy == "merge" || n.strategy == "merge,retainKeys"):
		l.ElementRelationship = smd.Associative
		if n.mergeKey != "" {
			l.Keys = []string{n.mergeKey}
		}
	}
	return l
}
