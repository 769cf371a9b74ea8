// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// podRules are the rules of a plugin about pods.
func podRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{"pods"}, admissionregistrationv1.Create, admissionregistrationv1.Update)}
}

// created are the rules of a plugin about what is created of a resource of the core group.
func created(resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{resource}, admissionregistrationv1.Create)}
}

// podOf returns the pod that is created or updated; nil where the review is about something
// else, or with an error.
func podOf(a *plugin.Attributes) (*corev1.Pod, error) {
	if o := a.Operation(); !a.Is("", "pods") || o != admissionv1.Create && o != admissionv1.Update {
		return nil, nil //nolint:nilnil // there is none
	}
	pod, err := plugin.Decode[corev1.Pod](a.Object())
	if pod == nil && err == nil {
		return nil, missing("Pod")
	}
	return pod, err
}

// visitContainers calls visit for each container of a pod with its path, in the order in
// which kube-apiserver visits them: init containers, containers, ephemeral containers. Nobody
// writes to them.
func visitContainers(spec *corev1.PodSpec, visit func(c *corev1.Container, path []any)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i], []any{"spec", "initContainers", i})
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i], []any{"spec", "containers", i})
	}
	for i := range spec.EphemeralContainers {
		visit((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), []any{"spec", "ephemeralContainers", i})
	}
}

// fieldPath is the path of a patch as Kubernetes writes it in messages.
func fieldPath(path []any) *field.Path {
	var at *field.Path
	for _, part := range path {
		if i, ok := part.(int); ok {
			at = at.Index(i)
		} else {
			at = at.Child(part.(string))
		}
	}
	return at
}

// addEntries are the operations that add those entries to a map at the path that it does not
// have.
func addEntries[K ~string, V any](own, entries map[K]V, path ...any) (patch []plugin.Operation) {
	if len(own) == 0 && len(entries) > 0 {
		return []plugin.Operation{plugin.Add(entries, path...)}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := own[key]; !ok {
			patch = append(patch, plugin.Add(entries[key], append(path[:len(path):len(path)], string(key))...))
		}
	}
	return patch
}
