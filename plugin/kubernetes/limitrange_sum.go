// SPDX-License-Identifier: Apache-2.0

package kubernetes

import corev1 "k8s.io/api/core/v1"

// usage is what a pod uses, by its containers and as a whole.
type usage struct {
	*corev1.Pod
	requests, limits corev1.ResourceList // nil until somebody asks
}

func (u *usage) sums() (requests, limits corev1.ResourceList) {
	if u.requests == nil {
		u.requests = podSum(u.Pod, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
		u.limits = podSum(u.Pod, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
	}
	return u.requests, u.limits
}

// podSum is what a pod as a whole requests, or is limited to, as LimitRanges count it: the
// sum of its containers and sidecars, or what its init containers take with the sidecars
// that run beside them, if that is more. CPU and memory of the pod itself stand for those of
// its containers.
func podSum(pod *corev1.Pod, of func(*corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, most := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		addResources(sum, of(&pod.Spec.Containers[i].Resources))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		own := of(&c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addResources(sum, own)
			addResources(sidecars, own)
			raiseResources(most, sidecars)
			continue
		}
		beside := corev1.ResourceList{}
		addResources(beside, own)
		addResources(beside, sidecars)
		raiseResources(most, beside)
	}
	raiseResources(sum, most)
	if pod.Spec.Resources != nil {
		own := of(pod.Spec.Resources)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity, ok := own[name]; ok {
				sum[name] = quantity
			}
		}
	}
	return sum
}

// addResources adds more to the list.
func addResources(list, more corev1.ResourceList) {
	for name, quantity := range more {
		total, ok := list[name]
		if ok {
			total.Add(quantity)
		} else {
			total = quantity.DeepCopy()
		}
		list[name] = total
	}
}

// raiseResources raises each of the list to that of other, if that is more.
func raiseResources(list, other corev1.ResourceList) {
	for name, quantity := range other {
		if own, ok := list[name]; !ok || quantity.Cmp(own) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
