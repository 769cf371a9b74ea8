// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/policy/schema"
)

var widget = apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func readCustom(text string) (*schema.Custom, field.ErrorList) {
	return schema.ReadCustom(widget, "widgets", []byte(text), field.NewPath("s"))
}

// H29 What is wrong with a definition is told with its path, as far as merging needs it.
func TestWrongDefinitions(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"type":"object","properties":{"a":`, depth) + `{"type":"string"}` + strings.Repeat("}}", depth)
	}
	wide := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"a":{"type":"string"}`)
		for i := range n {
			fmt.Fprintf(&b, `,"p%d":{}`, i)
		}
		return b.String() + "}}"
	}
	in := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	for text, want := range map[string]string{
		`{"type":"object"}`:                     "",
		"":                                      "",
		`{}`:                                    "s.type: Required value: must not be empty for specified object fields",
		`{"type":"string"}`:                     `s.type: Invalid value: "string": must be object at the root`,
		in(`{"$ref":"#/b"}`):                    "s.properties[a].$ref: Forbidden: $ref is not supported",
		in(`{"type":"text"}`):                   `s.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
		in(`{"type":"array"}`):                  "s.properties[a].items: Required value: must be specified",
		in(`{"type":"array","items":[]}`):       `s.properties[a].items: Invalid value: "": is not of the type that is expected`,
		in(`{"type":"object","properties":[]}`): `s.properties[a].properties: Invalid value: "": is not of the type that is expected`,
		in(`{"type":"object","x-kubernetes-embedded-resource":"a"}`):                                                             `s.properties[a].x-kubernetes-embedded-resource: Invalid value: "": is not of the type that is expected`,
		in(`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"map"}}`): "s.properties[a].additionalProperties.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
		in(`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bag"}`):                                          `s.properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"`,
		in(`{"type":"object","x-kubernetes-map-type":"set"}`):                                                                    `s.properties[a].x-kubernetes-map-type: Unsupported value: "set": supported values: "atomic", "granular"`,
		in(`{"type":["string","null"],"allOf":[{"anything":[{}]}],"not":{"a":[1,{"b":null}]}}`):                                  "",
		in(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"a":[1,{"b":null}]},"description":7}`):       "",
		nested(90):  "",
		nested(200): `s: Invalid value: "": is nested more than 100 deep`,
		in(`{"not":` + strings.Repeat("[", 2000)): `s: Invalid value: "": is nested more than 100 deep`,
		wide(20): "10 problems",
		strings.ReplaceAll(wide(50_000), "{}", `{"type":"string"}`):                               `s: Invalid value: "": has more than 50000 schemas`,
		`{"type":"object","default":` + strings.Repeat(`[`, 300) + strings.Repeat("]", 300) + "}": `s: Invalid value: "": is nested more than 100 deep`,
		`{"type":"object","required":["a"`:                                                        `s: Invalid value: "": EOF`,
	} {
		_, errs := readCustom(text)
		got := ""
		if len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if want == "10 problems" {
			got = fmt.Sprint(len(errs), " problems")
		}
		if got != want {
			t.Errorf("%.120s\n got %s\nwant %s", text, got, want)
		}
	}
}

// H29 A kind of a definition is found by its name, and by its resource, beside those that
// are built in, in whose place none comes.
func TestCustomKinds(t *testing.T) {
	custom, errs := readCustom(`{"type":"object","properties":{"spec":{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}}}`)
	pod := apischema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods, more := schema.ReadCustom(pod, "pods", nil, nil)
	if len(errs)+len(more) > 0 {
		t.Fatal(errs, more)
	}
	types := schema.BuiltIn().With([]*schema.Custom{custom, pods})
	for resource, want := range map[apischema.GroupVersionResource]bool{
		{Group: "example.com", Version: "v1", Resource: "widgets"}: true,
		{Group: "example.com", Version: "v2", Resource: "widgets"}: false,
		{Group: "example.com", Version: "v1", Resource: "gadgets"}: false,
		{Group: "apps", Version: "v1", Resource: "deployments"}:    true,
		{Version: "v1", Resource: "pods"}:                          true,
	} {
		if types.Has(resource) != want {
			t.Errorf("%v: %t", resource, !want)
		}
	}
	of, ok := types.Of(widget)
	if !ok {
		t.Fatal("it is not known")
	}
	got, err := of.Merge(
		map[string]any{"metadata": map[string]any{"finalizers": []any{"a"}}, "spec": map[string]any{"list": []any{"a"}, "later": int64(1)}},
		map[string]any{"metadata": map[string]any{"finalizers": []any{"b"}}, "spec": map[string]any{"list": []any{"b"}}})
	want := map[string]any{"metadata": map[string]any{"finalizers": []any{"a", "b"}}, "spec": map[string]any{"list": []any{"a", "b"}, "later": int64(1)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	of, _ = types.Of(pod)
	if _, err := of.Merge(map[string]any{}, map[string]any{"spec": map[string]any{"nodeName": int64(1)}}); err == nil {
		t.Error("a definition has taken the place of pods")
	}
}
