// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// crds is where the generated CustomResourceDefinitions are.
const crds = "../api/v1alpha1/crds"

// secret is what no answer may show.
const secret = "eyJhbGciOi-this-is-a-token"

// TestCustomResources has a real kube-apiserver take the CustomResourceDefinitions, and
// plays testdata/crds: an object for each of their rules that it accepts, and one that it
// refuses in the rule's words. No answer shows a token that stands in the wrong place.
func TestCustomResources(t *testing.T) {
	c := shared.alone
	rules := c.define(t)
	files, err := filepath.Glob("testdata/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var story struct {
			Kind, Plural string
			Spec         map[string]any   // of an object that is accepted
			Accepted     []map[string]any // fields in place of those of Spec, or besides
			Refused      []struct {
				Spec map[string]any
				Says string
			}
		}
		if err := yaml.UnmarshalStrict(text, &story); err != nil {
			t.Fatal(file, err)
		}
		in := schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: story.Plural}
		create := func(spec map[string]any) error {
			merged := maps.Clone(story.Spec)
			maps.Copy(merged, spec)
			for name, value := range merged {
				if value == nil {
					delete(merged, name)
				}
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "dispatcher.dev/v1alpha1", "kind": story.Kind, "metadata": map[string]any{"name": "tried"}, "spec": merged,
			}}
			_, err := c.objects.Resource(in).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			return err
		}
		for i, spec := range append([]map[string]any{{}}, story.Accepted...) {
			if err := create(spec); err != nil {
				t.Errorf("%s: accepted[%d]: %v", story.Kind, i-1, err)
			}
		}
		for i, refused := range story.Refused {
			err := create(refused.Spec)
			if err == nil || !strings.Contains(err.Error(), refused.Says) {
				t.Errorf("%s: refused[%d]: %v, want %q", story.Kind, i, err, refused.Says)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: refused[%d] shows the token: %v", story.Kind, i, err)
			}
			rules[story.Kind] = slices.DeleteFunc(rules[story.Kind], func(message string) bool { return message == refused.Says })
		}
		for _, message := range rules[story.Kind] {
			t.Errorf("%s: nothing is refused with %q", story.Kind, message)
		}
		delete(rules, story.Kind)
	}
	for kind, left := range rules {
		if len(left) > 0 {
			t.Errorf("%s has rules and no file in testdata/crds", kind)
		}
	}
}

// define applies the CustomResourceDefinitions and returns the messages of the rules of
// each kind.
func (c *cluster) define(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	rules := map[string][]string{}
	definitions := c.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &crd.Object); err != nil {
			t.Fatal(file, err)
		}
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		rules[kind] = messages(crd.Object)
		name := crd.GetName()
		// As kubectl applies it, which TestInstall has do so again.
		annotations := crd.GetAnnotations()
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
		crd.SetAnnotations(annotations)
		if _, err := definitions.Apply(t.Context(), name, crd, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
			t.Fatal(err)
		}
		plural, _, _ := strings.Cut(name, ".")
		eventually(t, name+" is served", func() error {
			_, err := c.objects.Resource(schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: plural}).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return rules
}

// messages returns those of all rules below, each once.
func messages(below any) (all []string) {
	switch v := below.(type) {
	case map[string]any:
		for name, value := range v {
			if rule, ok := value.([]any); ok && name == "x-kubernetes-validations" {
				for _, r := range rule {
					all = append(all, r.(map[string]any)["message"].(string))
				}
				continue
			}
			all = append(all, messages(value)...)
		}
	case []any:
		for _, value := range v {
			all = append(all, messages(value)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
