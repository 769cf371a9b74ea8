// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
