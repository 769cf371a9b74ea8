// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
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
