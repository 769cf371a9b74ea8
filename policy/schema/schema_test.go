// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// H23 Which kinds are built in, by their group, version and kind.
func TestBuiltInKinds(t *testing.T) {
	for kind, want := range map[string]bool{
		"/v1, Pod": true, "apps/v1, Deployment": true, "networking.k8s.io/v1, Ingress": true, "rbac.authorization.k8s.io/v1, Role": true,
		"internal.apiserver.k8s.io/v1alpha1, StorageVersion": true, "autoscaling/v2, HorizontalPodAutoscaler": true,
		"/v2, Pod": false, "/v1, Deployment": false, "core/v1, Pod": false, "apiserverinternal/v1alpha1, StorageVersion": false,
		"example.com/v1, Pod": false, "apps.example.com/v1, Deployment": false, "/v1, ": false, "/, ": false,
	} {
		gvk := kindOf(kind)
		if of, ok := policyschema.BuiltIn().Of(gvk); ok != want || ok && !of.IsValid() {
			t.Errorf("%s is built in: %t", kind, ok)
		}
	}
}

func kindOf(text string) schema.GroupVersionKind {
	of, kind, _ := strings.Cut(text, ", ")
	group, version, _ := strings.Cut(of, "/")
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// H26 Whether there is a built-in kind of a resource; what a wildcard may stand for is found
// out for each request.
func TestHasResource(t *testing.T) {
	for _, row := range []struct {
		groups, versions []string
		resource         string
		want             bool
	}{
		{[]string{""}, []string{"v1"}, "pods", true},
		{[]string{"apps"}, []string{"v1"}, "deployments", true},
		{[]string{"example.com", "apps"}, []string{"v9", "v1"}, "deployments", true},
		{[]string{"networking.k8s.io"}, []string{"v1"}, "ingresses", true},
		{[]string{""}, []string{"v1"}, "deployments", false},
		{[]string{"apps"}, []string{"v9"}, "deployments", false},
		{[]string{"example.com"}, []string{"v1"}, "pods", false},
		{[]string{"core"}, []string{"v1"}, "pods", false},
		{[]string{""}, []string{"v1"}, "pod", false},
		{[]string{"*"}, []string{"v1"}, "widgets", true},
		{[]string{"example.com"}, []string{"*"}, "widgets", true},
		{[]string{"example.com"}, []string{"v1"}, "*", true},
		{[]string{"example.com"}, []string{"v1"}, "widgets/scale", true},
		{[]string{"example.com"}, []string{"v1"}, "widgets/", false},
		{nil, nil, "pods", false},
		{[]string{"example.com"}, []string{"v1"}, "io.k8s.api.core.v1.pods", false},
		{[]string{""}, []string{"v1"}, "io.k8s.api.apps.v1.deployments", false},
	} {
		if got := policyschema.BuiltIn().Has(row.groups, row.versions, row.resource); got != row.want {
			t.Errorf("%q/%q %s: %t", row.groups, row.versions, row.resource, got)
		}
	}
}

// H23 A later version's fields are merged, at every level, as deduced from what they hold;
// what the schema knows keeps its type.
func TestLaterFields(t *testing.T) {
	of, ok := policyschema.BuiltIn().Of(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if !ok {
		t.Fatal("there are no pods")
	}
	for text, want := range map[string]bool{
		"{later: 1, spec: {later: {a: [1]}, containers: [{name: a, later: true, ports: [{containerPort: 1, later: b}]}]}, metadata: {later: {}, labels: {a: b}}}": true,
		"{spec: {containers: {}}}": false, "{metadata: {labels: {a: 1}}}": false, "{spec: {nodeSelector: {a: {b: c}}}}": false, "{spec: {hostNetwork: 1}}": false,
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		value, err := of.FromUnstructured(object)
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err == nil {
			merges(t, of, value)
		}
	}
}

// merges fails the test unless a later field, merged, keeps what it does not say.
func merges(t *testing.T, of typed.ParseableType, value *typed.TypedValue) {
	t.Helper()
	more, err := of.FromUnstructured(map[string]any{"spec": map[string]any{"later": map[string]any{"b": int64(2)}}})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := value.Merge(more)
	if err != nil {
		t.Fatal(err)
	}
	later := merged.AsValue().Unstructured().(map[string]any)["spec"].(map[string]any)["later"].(map[string]any)
	if later["a"] == nil || later["b"] != int64(2) {
		t.Errorf("merged it is %v", later)
	}
}
