// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// RuntimeClass gives new pods the overhead, the node selector and the tolerations of their
// RuntimeClass, and denies those with another overhead.
func RuntimeClass() plugin.Plugin {
	p := unconfigured("RuntimeClass", runtimeClass{}, created("pods")...)
	p.Lists = append(p.Lists, runtimeClasses)
	return p
}

var runtimeClasses = nodev1.SchemeGroupVersion.WithResource("runtimeclasses")

type runtimeClass struct{}

func (runtimeClass) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, class, answer, err := runtimeClassOf(a)
	if pod == nil || class == nil {
		return answer, err
	}
	if class.Overhead != nil {
		if len(pod.Spec.Overhead) > 0 && !sameResources(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return otherOverhead(a), nil
		}
		answer.Patch = addEntries(pod.Spec.Overhead, class.Overhead.PodFixed, "spec", "overhead")
	}
	if class.Scheduling == nil {
		return answer, nil
	}
	selector := class.Scheduling.NodeSelector
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if own, ok := pod.Spec.NodeSelector[key]; ok && own != selector[key] {
			return a.Forbid("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, selector[key], key, own), nil
		}
	}
	merged, ok := mergeTolerations(pod.Spec.Tolerations, class.Scheduling.Tolerations)
	if !ok {
		return a.Forbid("a pod, those of its RuntimeClass included, may have at most %d tolerations", maxTolerations), nil
	}
	answer.Patch = append(answer.Patch, addEntries(pod.Spec.NodeSelector, selector, "spec", "nodeSelector")...)
	answer.Patch = append(answer.Patch, merged.patch...)
	return answer, nil
}

func (runtimeClass) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, class, answer, err := runtimeClassOf(a)
	switch {
	case pod == nil || answer.Denied != nil:
		return answer, err
	case class != nil && class.Overhead != nil:
		if !sameResources(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return otherOverhead(a), nil
		}
	case pod.Spec.Overhead != nil:
		return a.Forbid("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"), nil
	}
	return plugin.Answer{}, nil
}

// runtimeClassOf returns the pod, nil where the plugin has nothing to say, and the
// RuntimeClass that it names, or a denial.
func runtimeClassOf(a *plugin.Attributes) (pod *corev1.Pod, class *nodev1.RuntimeClass, answer plugin.Answer, err error) {
	if a.Operation() != admissionv1.Create {
		return nil, nil, answer, nil
	}
	if pod, err = podOf(a); pod == nil || pod.Spec.RuntimeClassName == nil {
		return pod, nil, answer, err
	}
	name := *pod.Spec.RuntimeClassName
	if name == "" { // which kube-apiserver's client says of a request that it does not send
		return pod, nil, denied(errors.New("resource name may not be empty")), nil
	}
	if class, err = plugin.Get[nodev1.RuntimeClass](a, runtimeClasses, "", name); err != nil {
		return nil, nil, answer, err
	}
	if class == nil {
		answer = a.Forbid("pod rejected: RuntimeClass %q not found", name)
	}
	return pod, class, answer, nil
}

func otherOverhead(a *plugin.Attributes) plugin.Answer {
	return a.Forbid("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
}

// sameResources reports whether two lists have the same quantities, however written.
func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) || !areComputable(a, b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
