// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Custom is a kind of a CustomResourceDefinition in one of its versions.
type Custom struct {
	Kind     schema.GroupVersionKind
	Resource string // the plural
	root     *node
}

// ReadCustom reads the openAPIV3Schema of one version, which is at; an empty one allows
// objects of any form. It reads what merging and type checking take, and refuses what no
// API server stores as far as that is seen by it.
func ReadCustom(kind schema.GroupVersionKind, resource string, openAPI []byte, at *field.Path) (*Custom, field.ErrorList) {
	c := &Custom{Kind: kind, Resource: resource, root: &node{typ: "object"}}
	if len(openAPI) == 0 {
		return c, nil
	}
	r := newNodeReader(bytes.NewReader(openAPI), true)
	root, err := r.node(at)
	if err != nil && len(r.errs) == 0 {
		r.errs = field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	if root.typ != "object" {
		return nil, field.ErrorList{field.Invalid(at.Child("type"), root.typ, "must be object at the root")}
	}
	root.beObject()
	root.embed()
	c.root = root
	return c, nil
}

// beObject declares what every object has, as kube-apiserver publishes it: the rest of
// what a schema says of its metadata counts for no merge.
func (n *node) beObject() {
	properties := map[string]*node{}
	for name, property := range n.properties {
		properties[name] = property
	}
	properties["apiVersion"], properties["kind"] = &node{typ: "string"}, &node{typ: "string"}
	properties["metadata"] = &node{ref: objectMeta}
	n.properties = properties
}

// embed has objects in objects declare the same.
func (n *node) embed() {
	if n == nil {
		return
	}
	for _, property := range n.properties {
		property.embed()
	}
	n.items.embed()
	n.additional.embed()
	if n.embedded {
		n.beObject()
	}
}

// With returns the types of t, which are built in, and of other kinds. Their structs hold
// fields that are not declared as well: the definition in a cluster may be a later one.
func (t *Types) With(custom []*Custom) *Types {
	if len(custom) == 0 {
		return t
	}
	with := &Types{names: make(map[schema.GroupVersionKind]string, len(custom)), custom: custom}
	types := make([]smd.TypeDef, 0, len(t.parser.Schema.Types)+len(custom))
	types = append(types, t.parser.Schema.Types...)
	for _, c := range custom {
		if _, known := t.Of(c.Kind); known {
			continue // which no cluster has from a definition
		}
		name := fmt.Sprintf("%s/%s.%s", c.Kind.Group, c.Kind.Version, c.Kind.Kind)
		made := smd.TypeDef{Name: name, Atom: atoms{}.of(c.root)}
		tolerate(&made.Atom)
		types = append(types, made)
		with.names[c.Kind] = name
	}
	with.parser = &typed.Parser{Schema: smd.Schema{Types: types}}
	return with
}
