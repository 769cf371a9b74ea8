// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Shape is the form of a value as expressions are checked against it. nil is one that
// kube-apiserver shows to no expression.
type Shape struct {
	Form    Form
	Fields  map[string]*Shape // of an Object
	Element *Shape            // of a List, or of a Map
}

// Form is what a value is.
type Form uint8

// The forms.
const (
	Any Form = iota
	Object
	Map
	List
	String
	Bytes
	Duration
	Timestamp
	Bool
	Int
	Double
)

// Shape returns the form of the objects of a kind; ok is false where it is not known.
func (t *Types) Shape(kind schema.GroupVersionKind) (s *Shape, ok bool) {
	name := nameOf(kind)
	if _, ok := t.parser.Schema.FindNamedType(name); ok && name != "" {
		return t.named(name, nil), true
	}
	for _, c := range t.custom {
		if c.Kind == kind {
			return t.declared(c.root), true
		}
	}
	return nil, false
}

// Kind returns the kind that a resource is of.
func (t *Types) Kind(of schema.GroupVersionResource) (kind schema.GroupVersionKind, ok bool) {
	for _, c := range t.custom {
		if c.Kind.GroupVersion() == of.GroupVersion() && c.Resource == of.Resource {
			return c.Kind, true
		}
	}
	for _, kind := range t.builtIn(of.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(kind); plural.Resource == of.Resource {
			return kind, true
		}
	}
	return kind, false
}

// named is the form of a built-in type. Types that are in themselves, which there are none
// of, would end there. The path has those around it.
func (t *Types) named(name string, path []string) *Shape {
	switch name {
	case quantity: // it is of two types in OpenAPI
		return nil
	case intOrString:
		return &Shape{Form: Any}
	case rawExtension, untypedName: // which the former is called where it is a field
		return &Shape{Form: Object}
	case timeName, microTime:
		return &Shape{Form: Timestamp}
	}
	if slices.Contains(path, name) {
		return &Shape{Form: Object}
	}
	def, _ := t.parser.Schema.FindNamedType(name)
	s := t.shapeOf(def.Atom, append(slices.Clip(path), name))
	if s != nil {
		for _, field := range bytesOf[name] {
			if text := s.Fields[field]; text != nil {
				s.Fields[field] = inBytes(text)
			}
		}
	}
	return s
}

func (t *Types) refers(to smd.TypeRef, path []string) *Shape {
	if to.NamedType != nil {
		return t.named(*to.NamedType, path)
	}
	return t.shapeOf(to.Inlined, path)
}

func (t *Types) shapeOf(a smd.Atom, path []string) *Shape {
	switch {
	case a.Map != nil && a.List != nil: // of any type
		return nil
	case a.Map != nil:
		return t.mapOf(a.Map, path)
	case a.List != nil:
		if element := t.refers(a.List.ElementType, path); element != nil {
			return &Shape{Form: List, Element: element}
		}
	case a.Scalar == nil:
	case *a.Scalar == smd.Numeric:
		return &Shape{Form: Int} // no built-in kind has another number
	case *a.Scalar == smd.Boolean:
		return &Shape{Form: Bool}
	default:
		return &Shape{Form: String}
	}
	return nil
}

func (t *Types) mapOf(m *smd.Map, path []string) *Shape {
	of := m.ElementType
	free := of.NamedType != nil && *of.NamedType == deducedName || of.Inlined.Map != nil && of.Inlined.List != nil
	if len(m.Fields) == 0 && !free && (of.NamedType != nil || of.Inlined != smd.Atom{}) {
		if element := t.refers(of, path); element != nil {
			return &Shape{Form: Map, Element: element}
		}
		return nil
	}
	s := &Shape{Form: Object, Fields: map[string]*Shape{}}
	for i := range m.Fields {
		if field := t.refers(m.Fields[i].Type, path); field != nil {
			s.Fields[m.Fields[i].Name] = field
		}
	}
	return s
}

// declared is the form that a CustomResourceDefinition says
// (k8s.io/apiserver/pkg/cel/common/schemas.go).
func (t *Types) declared(n *node) *Shape {
	switch {
	case n.ref != "":
		return t.named(n.ref, nil)
	case n.intOrString:
		return &Shape{Form: Any}
	}
	switch n.typ {
	case "object":
		return t.declaredObject(n)
	case "array":
		if element := t.declared(n.items); element != nil {
			return &Shape{Form: List, Element: element}
		}
	case "boolean":
		return &Shape{Form: Bool}
	case "number":
		return &Shape{Form: Double}
	case "integer":
		return &Shape{Form: Int}
	case "string":
		form, ok := map[string]Form{"byte": Bytes, "duration": Duration, "date": Timestamp, "date-time": Timestamp}[n.format]
		if !ok {
			form = String
		}
		return &Shape{Form: form}
	}
	return nil
}

func (t *Types) declaredObject(n *node) *Shape {
	if n.additional != nil {
		if element := t.declared(n.additional); element != nil {
			return &Shape{Form: Map, Element: element}
		}
		return nil
	}
	s := &Shape{Form: Object, Fields: map[string]*Shape{}}
	for name, property := range n.properties {
		if field := t.declared(property); field != nil {
			s.Fields[name] = field
		}
	}
	return s
}

const (
	intOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
	timeName    = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
	microTime   = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
)

// inBytes is the form of a field whose texts are bytes.
func inBytes(s *Shape) *Shape {
	if s.Form == Map {
		return &Shape{Form: Map, Element: inBytes(s.Element)}
	}
	return &Shape{Form: Bytes}
}

// bytesOf are the fields of built-in types that hold bytes, which merging does not tell
// from text. A test in conformance/schema has them from the API's types.
var bytesOf = map[string][]string{
	"io.k8s.api.admissionregistration.v1.WebhookClientConfig":         {"caBundle"},
	"io.k8s.api.admissionregistration.v1beta1.WebhookClientConfig":    {"caBundle"},
	"io.k8s.api.certificates.v1.CertificateSigningRequestSpec":        {"request"},
	"io.k8s.api.certificates.v1.CertificateSigningRequestStatus":      {"certificate"},
	"io.k8s.api.certificates.v1.PodCertificateRequestSpec":            {"stubPKCS10Request"},
	"io.k8s.api.certificates.v1beta1.CertificateSigningRequestSpec":   {"request"},
	"io.k8s.api.certificates.v1beta1.CertificateSigningRequestStatus": {"certificate"},
	"io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec":       {"pkixPublicKey", "proofOfPossession", "stubPKCS10Request"},
	"io.k8s.api.core.v1.ConfigMap":                                    {"binaryData"},
	"io.k8s.api.core.v1.Secret":                                       {"data"},
}
