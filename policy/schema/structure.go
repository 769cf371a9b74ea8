// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// node is what merging and type checking read of an OpenAPI v3 schema. The rest, values
// that are allowed and what people are told, stays with the API server.
type node struct {
	ref        string // the name of another schema, which this is
	typ        string
	format     string
	value      any // default
	properties map[string]*node
	additional *node // the schema of all other properties
	others     bool  // other properties are of any type
	closed     bool  // there are no others
	items      *node

	intOrString, preserve, embedded bool
	list, mapType                   string
	keys                            []string
	strategy, mergeKey              string // of types of Go, in place of list and keys
	kinds                           []schema.GroupVersionKind
}

const (
	// maxNodes bounds the schemas that are read of one CustomResourceDefinition, or of one
	// document of a cluster, each of a property, of items or of what is in a default.
	maxNodes = 50_000
	// maxDepth bounds how deep they are in one another, and maxSkipped how deep what is
	// not read may be.
	maxDepth   = 100
	maxSkipped = 1000
	// maxProblems bounds how many are told.
	maxProblems = 10
)

// nodeReader reads schemas from JSON, piece by piece: what it does not keep takes no memory.
type nodeReader struct {
	*json.Decoder
	custom bool // of a CustomResourceDefinition: structural, and without references
	left   int  // of maxNodes
	depth  int
	errs   field.ErrorList
}

func newNodeReader(r io.Reader, custom bool) *nodeReader {
	return &nodeReader{Decoder: json.NewDecoder(r), custom: custom, left: maxNodes}
}

var (
	errMany  = fmt.Errorf("has more than %d schemas", maxNodes)
	errDeep  = fmt.Errorf("is nested more than %d deep", maxDepth)
	errOther = errors.New("is not of the type that is expected")
)

// problem notes what is wrong, and ends reading where that is enough.
func (r *nodeReader) problem(err *field.Error) error {
	r.errs = append(r.errs, err)
	if len(r.errs) >= maxProblems {
		return err
	}
	return nil
}

// count counts one more schema, or a part of a default.
func (r *nodeReader) count() error {
	if r.left--; r.left < 0 {
		return errMany
	}
	return nil
}

// below calls read one level deeper.
func (r *nodeReader) below(read func() error) error {
	if r.depth++; r.depth > maxDepth {
		return errDeep
	}
	defer func() { r.depth-- }()
	return read()
}

// node reads a schema.
func (r *nodeReader) node(at *field.Path) (*node, error) {
	n := &node{}
	if err := r.count(); err != nil {
		return n, err
	}
	err := r.below(func() error {
		return r.members(func(key string) error { return r.member(n, key, at) })
	})
	if err != nil {
		return n, err
	}
	return n, r.check(n, at)
}

// member reads what a schema says under a key.
func (r *nodeReader) member(n *node, key string, at *field.Path) (err error) {
	switch key {
	case "$ref":
		n.ref, err = r.name()
	case "allOf":
		err = r.allOf(n)
	case "type":
		n.typ, err = r.text()
	case "format":
		n.format, err = r.text()
	case "default":
		n.value, err = r.any()
	case "properties":
		n.properties, err = r.nodes(at.Child(key))
	case "additionalProperties":
		err = r.additional(n, at.Child(key))
	case "items":
		n.items, err = r.node(at.Child(key))
	case "x-kubernetes-int-or-string":
		n.intOrString, err = r.truth()
	case "x-kubernetes-preserve-unknown-fields":
		n.preserve, err = r.truth()
	case "x-kubernetes-embedded-resource":
		n.embedded, err = r.truth()
	case "x-kubernetes-list-type":
		n.list, err = r.text()
	case "x-kubernetes-list-map-keys":
		n.keys, err = r.texts()
	case "x-kubernetes-map-type":
		n.mapType, err = r.text()
	case "x-kubernetes-patch-strategy":
		n.strategy, err = r.text()
	case "x-kubernetes-patch-merge-key":
		n.mergeKey, err = r.text()
	case "x-kubernetes-group-version-kind":
		n.kinds, err = r.kinds()
	default:
		err = r.skip()
	}
	if errors.Is(err, errOther) {
		err = r.problem(field.Invalid(at.Child(key), "", errOther.Error()))
	}
	return err
}

// check reports what keeps a schema from being merged by.
func (r *nodeReader) check(n *node, at *field.Path) error {
	var found *field.Error
	switch n.typ {
	case "", "object", "array", "integer", "boolean", "number", "string":
	default:
		found = field.NotSupported(at.Child("type"), n.typ, []string{"array", "boolean", "integer", "number", "object", "string"})
	}
	listType, mapType := at.Child("x-kubernetes-list-type"), at.Child("x-kubernetes-map-type")
	switch {
	case found != nil:
	case r.custom && n.ref != "":
		found = field.Forbidden(at.Child("$ref"), "$ref is not supported")
	case r.custom && n.typ == "" && !n.intOrString && !n.preserve:
		found = field.Required(at.Child("type"), "must not be empty for specified object fields")
	case n.typ == "array" && n.items == nil:
		found = field.Required(at.Child("items"), "must be specified")
	case n.list == "map" && len(n.keys) == 0:
		found = field.Required(at.Child("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map")
	case n.list != "" && n.list != "map" && n.list != "set" && n.list != "atomic":
		found = field.NotSupported(listType, n.list, []string{"atomic", "set", "map"})
	case n.mapType != "" && n.mapType != "granular" && n.mapType != "atomic":
		found = field.NotSupported(mapType, n.mapType, []string{"atomic", "granular"})
	}
	if found == nil {
		return nil
	}
	return r.problem(found)
}

// nodes reads schemas by name.
func (r *nodeReader) nodes(at *field.Path) (map[string]*node, error) {
	all := map[string]*node{}
	return all, r.members(func(key string) (err error) {
		all[key], err = r.node(at.Key(key))
		return err
	})
}

// allOf reads the reference to which it is the only way to say something more.
func (r *nodeReader) allOf(n *node) error {
	refs, ref := 0, ""
	err := r.elements(func() error {
		refs++
		return r.members(func(key string) (err error) {
			if key != "$ref" {
				return r.skip()
			}
			ref, err = r.name()
			return err
		})
	})
	if refs == 1 && n.ref == "" {
		n.ref = ref
	}
	return err
}

func (r *nodeReader) additional(n *node, at *field.Path) error {
	t, err := r.Token()
	switch allowed, is := t.(bool); {
	case err != nil:
		return err
	case is:
		n.others, n.closed = allowed, !allowed
		return nil
	case t != json.Delim('{'):
		return r.dropped(t)
	}
	made := &node{}
	if err := r.count(); err != nil {
		return err
	}
	if err := r.below(func() error {
		return r.opened(func(key string) error { return r.member(made, key, at) })
	}); err != nil {
		return err
	}
	n.additional = made
	return r.check(made, at)
}

func (r *nodeReader) kinds() (all []schema.GroupVersionKind, err error) {
	return all, r.elements(func() error {
		if err := r.count(); err != nil {
			return err
		}
		var kind schema.GroupVersionKind
		err := r.members(func(key string) (err error) {
			switch key {
			case "group":
				kind.Group, err = r.text()
			case "version":
				kind.Version, err = r.text()
			case "kind":
				kind.Kind, err = r.text()
			default:
				err = r.skip()
			}
			return err
		})
		all = append(all, kind)
		return err
	})
}

// name reads what a reference leads to.
func (r *nodeReader) name() (string, error) {
	ref, err := r.text()
	return ref[strings.LastIndexByte(ref, '/')+1:], err
}
