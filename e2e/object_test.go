// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// documents reads YAML manifests.
func documents(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, text := range strings.Split(manifests, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// resource returns the client of an object's resource.
func (c *cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == "namespace" {
		return c.objects.Resource(mapping.Resource).Namespace(namespaceOr(o, "default")), nil
	}
	return c.objects.Resource(mapping.Resource), nil
}

func namespaceOr(o *unstructured.Unstructured, other string) string {
	if n := o.GetNamespace(); n != "" {
		return n
	}
	return other
}

// apply creates objects, and removes them at the end of the test. Webhook
// configurations of the name are replaced.
func (c *cluster) apply(t *testing.T, manifests string) {
	t.Helper()
	for _, o := range documents(t, c.fill(manifests)) {
		resource, err := c.resource(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resource.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
			t.Fatalf("%s: apply %s %s: %v", c.name, o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() {
			// Not the test's context, which has ended.
			err := resource.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("%s: delete %s %s: %v", c.name, o.GetKind(), o.GetName(), err)
			}
		})
	}
}

func (c *cluster) fill(manifest string) string { return shared.fill(manifest) }

// namespace makes a namespace for the test, and leaves it: nothing deletes what
// is in one here.
func (c *cluster) namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%d", asked.Add(1))
	c.namespaceOf(t, name, labels)
	return name
}

// namespaceOf makes a namespace of a name, and leaves it.
func (c *cluster) namespaceOf(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	o.SetLabels(labels)
	_, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
