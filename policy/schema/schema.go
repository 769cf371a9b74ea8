// SPDX-License-Identifier: Apache-2.0

// Package schema has what merging needs to know of kinds: which of their lists and maps are
// merged, by which keys, and which are replaced whole.
package schema

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of the schema
	"fmt"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// builtIn is the schema of the built-in kinds, as client-go has it. conformance/schema
// writes it.
//
//go:embed builtin.yaml.gz
var builtIn []byte

// Types are the types of kinds. They are frozen, and safe for concurrent use.
type Types struct {
	parser *typed.Parser
	names  map[schema.GroupVersionKind]string // of kinds that are not built in
	custom []*Custom
}

// BuiltIn returns the types of the built-in kinds, which the first call takes a tenth of a
// second to read.
var BuiltIn = sync.OnceValue(func() *Types {
	text, err := unpack()
	if err == nil {
		var parser *typed.Parser
		if parser, err = typed.NewParser(typed.YAMLObject(text)); err == nil {
			for i := range parser.Schema.Types {
				tolerate(&parser.Schema.Types[i].Atom)
			}
			return &Types{parser: parser}
		}
	}
	panic(fmt.Sprintf("the schema of the built-in kinds: %v", err)) // it depends on nothing but code
})

func unpack() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(builtIn))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// tolerate has structs hold fields that the schema does not know, which clusters of a later
// version of Kubernetes have: they are merged as deduced from what they hold.
func tolerate(a *smd.Atom) {
	if a.List != nil {
		tolerate(&a.List.ElementType.Inlined)
	}
	if a.Map == nil {
		return
	}
	for i := range a.Map.Fields {
		tolerate(&a.Map.Fields[i].Type.Inlined)
	}
	none := smd.TypeRef{}
	if len(a.Map.Fields) > 0 && a.Map.ElementType == none {
		a.Map.ElementType.NamedType = &deducedName
		return
	}
	tolerate(&a.Map.ElementType.Inlined)
}

// Of returns the type of the objects of a kind; ok is false where it is not known.
func (t *Types) Of(kind schema.GroupVersionKind) (of Type, ok bool) {
	name, ok := t.names[kind]
	if !ok {
		if name = nameOf(kind); name == "" {
			return of, false
		}
	}
	if _, ok = t.parser.Schema.FindNamedType(name); !ok {
		return of, false
	}
	return Type{t.parser.Type(name)}, true
}

// nameOf returns what OpenAPI documents call a kind; "" if it is no built-in one.
func nameOf(kind schema.GroupVersionKind) string {
	group := kind.Group
	switch {
	case group == "":
		group = "core"
	case group == "internal.apiserver.k8s.io":
		group = "apiserverinternal"
	case strings.HasSuffix(group, ".k8s.io"):
		group, _, _ = strings.Cut(group, ".")
	case strings.Contains(group, "."), group == "core", group == "apiserverinternal":
		return ""
	}
	return "io.k8s.api." + group + "." + kind.Version + "." + kind.Kind
}

// Has reports whether it is known which kind a resource is of.
func (t *Types) Has(resource schema.GroupVersionResource) bool {
	_, ok := t.Kind(resource)
	return ok
}

// builtIn returns the built-in types of a group and version, of which most are kinds.
func (t *Types) builtIn(of schema.GroupVersion) (kinds []schema.GroupVersionKind) {
	prefix := nameOf(of.WithKind(""))
	for i := range t.parser.Schema.Types {
		if kind, within := strings.CutPrefix(t.parser.Schema.Types[i].Name, prefix); within && prefix != "" {
			kinds = append(kinds, of.WithKind(kind))
		}
	}
	return kinds
}
