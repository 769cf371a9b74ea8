// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// H23 The schema that is embedded is that of client-go: "go generate ./schema" in this
// module writes it.
func TestSchemaIsCurrent(t *testing.T) {
	want, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("../../policy/schema/builtin.yaml.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it is another one (%d bytes, want %d, %v): run go generate ./schema", len(got), len(want), err)
	}
}

// H23 The type of each kind that client-go can apply is found.
func TestTypesOfKinds(t *testing.T) {
	found := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || applyconfigurations.ForKind(gvk) == nil {
			continue
		}
		if !isTop(gvk) || gvk.Kind == "Scale" { // which client-go has no type of
			continue
		}
		found++
		if _, ok := policyschema.BuiltIn().Of(gvk); !ok {
			t.Errorf("%s has no type", gvk)
		}
	}
	if found < 80 {
		t.Errorf("only %d kinds are looked at", found)
	}
	for _, gvk := range []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Pod"}, {Version: "v2", Kind: "Pod"}, {Version: "v1", Kind: "Pods"}, {Group: "core", Version: "v1", Kind: "Pod"}} {
		if _, ok := policyschema.BuiltIn().Of(gvk); ok {
			t.Errorf("%s has a type", gvk)
		}
	}
}

// isTop reports whether objects of the kind have metadata.
func isTop(gvk schema.GroupVersionKind) bool {
	o, err := scheme.Scheme.New(gvk)
	if err != nil {
		return false
	}
	_, has := o.(interface{ GetGenerateName() string })
	return has
}
