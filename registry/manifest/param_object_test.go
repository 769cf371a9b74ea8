// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const naming = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {paramKind: {apiVersion: example.com/v1, kind: Limits}, %s}
`

const limits = `
apiVersion: example.com/v1
kind: Limits
metadata: {name: a, namespace: shop, labels: {for: pods}, annotations: {dispatcher.dev/cluster: east}}
spec: {max: 9007199254740993}
`

// memory is files by name.
type memory map[string]string

func read(t *testing.T, sources ...memory) manifest.Input {
	t.Helper()
	var r manifest.Reader
	for _, files := range sources {
		b := bundle{}
		for name, text := range files {
			b = append(b, manifest.File{Name: name, Data: []byte(text)})
		}
		r.Sources = append(r.Sources, b)
	}
	return r.Read(t.Context())
}

// H12 Objects of the kind that a policy names are params, wherever they stand, whole; also
// where there is something wrong with the policy. Others are skipped.
func TestParams(t *testing.T) {
	want := manifest.Param{
		Origin:   manifest.Origin{File: "params.yaml", Object: "Limits/shop/a"},
		TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Limits"}, Namespace: "shop", Name: "a",
		Labels: map[string]string{"for": "pods"}, Cluster: "east",
		JSON: []byte(`{"apiVersion":"example.com/v1","kind":"Limits","metadata":{"annotations":{"dispatcher.dev/cluster":"east"},"labels":{"for":"pods"},"name":"a","namespace":"shop"},"spec":{"max":9007199254740993}}`),
	}
	for rest, problems := range map[string]int{"variables: []": 0, "unknown: 1": 1} {
		in := read(t, memory{"params.yaml": limits}, memory{"policy.yaml": fmt.Sprintf(naming, rest)}, memory{})
		if diff := cmp.Diff([]manifest.Param{want}, in.Objects.Params); diff != "" || len(in.Problems) != problems {
			t.Errorf("%v (-want +got):\n%s", in.Problems, diff)
		}
		if !slices.Equal(in.Populated, []bool{true, problems == 0, false}) {
			t.Errorf("with objects: %v", in.Populated)
		}
	}
	in := read(t, memory{"params.yaml": limits})
	if len(in.Objects.Params)+len(in.Problems) != 0 || len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0].Reason, "Limits (1)") {
		t.Errorf("%v, %v, %v", in.Objects.Params, in.Problems, in.Warnings)
	}
}

// H12 Of a CustomResourceDefinition what says the scope and the resource is read, and must
// be there.
func TestCustomResources(t *testing.T) {
	const whole = "group: example.com, names: {kind: Limits, plural: limits}, scope: Cluster, versions: [{name: v1, schema: {openAPIV3Schema: {}}}, {name: v2}]"
	definition := func(spec string) memory {
		return memory{"crd.yaml": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.example.com}, spec: {" + spec + "}}"}
	}
	want := manifest.CustomResource{
		Origin: manifest.Origin{File: "crd.yaml", Object: "CustomResourceDefinition/limits.example.com"},
		Group:  "example.com", Kind: "Limits", Plural: "limits", Versions: []manifest.CustomVersion{{Name: "v1", Schema: json.RawMessage("{}")}, {Name: "v2"}},
	}
	for scope, namespaced := range map[string]bool{"Cluster": false, "Namespaced": true} {
		in := read(t, definition(strings.Replace(whole, "Cluster", scope, 1)))
		want.Namespaced = namespaced
		if diff := cmp.Diff([]manifest.CustomResource{want}, in.Objects.CustomResources); diff != "" || len(in.Problems) > 0 {
			t.Errorf("%v (-want +got):\n%s", in.Problems, diff)
		}
	}
	for _, part := range []string{"group: example.com, ", "kind: Limits, ", ", plural: limits", "scope: Cluster, ", "{name: v1, schema: {openAPIV3Schema: {}}}, {name: v2}"} {
		in := read(t, definition(strings.Replace(whole, part, "", 1)))
		if len(in.Problems) != 1 || len(in.Objects.CustomResources) != 0 {
			t.Errorf("without %q: %v", part, in.Problems)
		}
	}
	for _, wrong := range []string{strings.Replace(whole, "name: v2", "name: v1", 1), strings.Replace(whole, "Cluster", "Somewhere", 1), strings.Replace(whole, "example.com", "[]", 1)} {
		if in := read(t, definition(wrong)); len(in.Problems) != 1 {
			t.Errorf("%s: %v", wrong, in.Problems)
		}
	}
}
