// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/kube-openapi/pkg/validation/spec"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// objectsOfDefinition is how many pairs of objects are merged by one definition.
const objectsOfDefinition = 20

// H29 Random objects of random CustomResourceDefinitions are merged as by the API
// server's own converter of types, which has them from the OpenAPI document that the API
// server publishes of the definition: by that document, and by the definition itself, which
// keeps fields that are not declared besides.
func TestCustomResources(t *testing.T) {
	pairs := number(t, "CONFORMANCE_N", 2000)
	came := map[string]int{}
	for i := range pairs / objectsOfDefinition {
		g := &source{rand.New(rand.NewPCG(number(t, "CONFORMANCE_SEED", 1), i))}
		definition := g.definition()
		d := read(t, definition)
		for range objectsOfDefinition {
			live, said, wrong := g.pair(definition)
			want, wantErr := d.theirs(live, said)
			of := func(types *policyschema.Types) (map[string]any, error) {
				known, ok := types.Of(widget)
				if !ok {
					t.Fatal("the kind has no type")
				}
				return known.Merge(runtime.DeepCopyJSON(live), runtime.DeepCopyJSON(said))
			}
			diff := func(which string, got map[string]any, err error) {
				if diff := cmp.Diff(want, got) + cmp.Diff(lines(wantErr), lines(err)); diff != "" {
					text, _ := json.MarshalIndent([]any{definition, live, said}, "", " ")
					t.Fatalf("definition %d, by the %s (-theirs +ours):\n%s\n%s", i, which, diff, text)
				}
			}
			got, err := of(d.document)
			diff("document", got, err)
			kind := kindOfMerge(wantErr)
			came[kind]++
			got, err = of(d.definition)
			if kind != "not declared" {
				diff("definition", got, err)
			} else if wrong == "" || err != nil && strings.Contains(err.Error(), "not declared") {
				t.Fatalf("%s: ours is %v, %v", wrong, err, got)
			}
		}
	}
	t.Log(came)
	for _, kind := range []string{"merged", "atomic", "not declared", "of another type", "without keys"} {
		if came[kind] == 0 {
			t.Errorf("no pair was %s", kind)
		}
	}
}

func kindOfMerge(err error) string {
	switch {
	case err == nil:
		return "merged"
	case strings.Contains(err.Error(), "atomic"):
		return "atomic"
	case strings.Contains(err.Error(), "not declared"):
		return "not declared"
	case strings.Contains(err.Error(), "omits all key"):
		return "without keys"
	}
	return "of another type"
}

// lines are those of an error, which are in no order, and neither are the paths in one.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	list := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == ',' || r == ' ' })
	slices.Sort(list)
	return list
}

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// typesOf are what both know of a definition.
type typesOf struct {
	published            map[string]*spec.Schema
	converter            managedfields.TypeConverter
	document, definition *policyschema.Types
}

func read(t *testing.T, openAPI map[string]any) typesOf {
	t.Helper()
	text, err := json.Marshal(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widget.Group, Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: widget.Kind, ListKind: "WidgetList", Plural: "widgets", Singular: "widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: widget.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}}},
		},
	}
	published, err := builder.BuildOpenAPIV3(crd, widget.Version, builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(published.Components.Schemas["com.example.v1.Widget"].Properties) == 0 {
		t.Fatalf("it is not structural: %s", text)
	}
	d := typesOf{published: published.Components.Schemas}
	if d.converter, err = managedfields.NewTypeConverter(published.Components.Schemas, false); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	if d.document, _, err = policyschema.ReadDocument(bytes.NewReader(document)); err != nil {
		t.Fatal(err)
	}
	custom, errs := policyschema.ReadCustom(widget, "widgets", text, field.NewPath("schema"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	d.definition = policyschema.BuiltIn().With([]*policyschema.Custom{custom})
	return d
}

// theirs is what the API server makes of the pair.
func (d typesOf) theirs(live, said map[string]any) (map[string]any, error) {
	merged, err := patch.ApplyStructuredMergeDiff(d.converter, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(said)})
	if err != nil {
		return nil, err
	}
	return merged.(*unstructured.Unstructured).Object, nil
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
