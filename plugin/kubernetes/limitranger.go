// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// LimitRanger holds pods and claims to the LimitRanges of their namespace, and gives
// containers the requests and limits that these have for those that say nothing.
func LimitRanger() plugin.Plugin {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	p := unconfigured("LimitRanger", limitRanger{},
		plugin.Rule("", "v1", []string{"pods"}, create),
		plugin.Rule("", "v1", []string{"pods/resize"}, update),
		plugin.Rule("", "v1", []string{"persistentvolumeclaims"}, create, update))
	p.Lists = append(p.Lists, limitRanges)
	return p
}

type limitRanger struct{}

func (limitRanger) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !isLimitedPod(a) {
		return plugin.Answer{}, nil
	}
	pod, ranges, err := limitedBy[corev1.Pod](a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	if answer := comparablePod(a, pod, ranges); answer.Denied != nil {
		return answer, nil
	}
	d := newDefaults(pod)
	for _, r := range ranges {
		d.add(r)
	}
	return plugin.Answer{Patch: d.patch()}, nil
}

func (limitRanger) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	switch {
	case isLimitedPod(a):
		pod, ranges, err := limitedBy[corev1.Pod](a)
		if pod == nil {
			return plugin.Answer{}, err
		}
		if answer := comparablePod(a, pod, ranges); answer.Denied != nil {
			return answer, nil
		}
		used := &usage{Pod: pod}
		for _, r := range ranges {
			if err := podWithin(used, r); err != nil {
				return a.Forbid("%w", err), nil
			}
		}
	case a.Is("", "persistentvolumeclaims") && (a.Operation() == admissionv1.Create || a.Operation() == admissionv1.Update):
		claim, ranges, err := limitedBy[corev1.PersistentVolumeClaim](a)
		if claim == nil {
			return plugin.Answer{}, err
		}
		if limitsClaims(ranges) && !areComputable(claim.Spec.Resources.Requests) {
			return a.Forbid("%w", errTooLarge), nil
		}
		for _, r := range ranges {
			if err := claimWithin(claim, r); err != nil {
				return a.Forbid("%w", err), nil
			}
		}
	}
	return plugin.Answer{}, nil
}

// limitsClaims reports whether one of the LimitRanges is about PersistentVolumeClaims.
func limitsClaims(ranges []*corev1.LimitRange) bool {
	return slices.ContainsFunc(ranges, func(r *corev1.LimitRange) bool {
		return slices.ContainsFunc(r.Spec.Limits, func(l corev1.LimitRangeItem) bool { return l.Type == corev1.LimitTypePersistentVolumeClaim })
	})
}

// isLimitedPod reports whether the review is about a pod that gets resources: one that is
// created, or resized.
func isLimitedPod(a *plugin.Attributes) bool {
	r := a.Resource()
	if r.Group != "" || r.Resource != "pods" {
		return false
	}
	return a.Subresource() == "" && a.Operation() == admissionv1.Create || a.Subresource() == "resize" && a.Operation() == admissionv1.Update
}

// limitedBy returns the object and the LimitRanges of its namespace. The object is nil where
// it is being deleted, or with an error.
func limitedBy[T any](a *plugin.Attributes) (object *T, ranges []*corev1.LimitRange, err error) {
	old, err := plugin.Decode[metav1.PartialObjectMetadata](a.OldObject())
	if err != nil || old != nil && old.DeletionTimestamp != nil {
		return nil, nil, err
	}
	if object, err = plugin.Decode[T](a.Object()); err != nil {
		return nil, nil, err
	}
	if object == nil {
		return nil, nil, missing(a.Kind().Kind)
	}
	if ranges, err = plugin.List[corev1.LimitRange](a, limitRanges, a.Namespace()); err != nil {
		return nil, nil, err
	}
	return object, ranges, nil
}

// maxComparisons bounds how many limits are compared with containers, which whoever may
// write both can make many: so many take some 50 ms.
const maxComparisons = 200_000

// comparisons bounds how much there is to do about a pod.
func comparisons(pod *corev1.Pod, ranges []*corev1.LimitRange) int {
	limits := 0
	for _, r := range ranges {
		for i := range r.Spec.Limits {
			l := &r.Spec.Limits[i]
			limits += 1 + len(l.Min) + len(l.Max) + len(l.MaxLimitRequestRatio) + len(l.Default) + len(l.DefaultRequest)
		}
	}
	containers := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	resources := 0
	for i := range containers {
		resources += len(containers[i].Resources.Requests) + len(containers[i].Resources.Limits)
	}
	// The sum over a pod goes over all resources for each of its init containers.
	return len(containers)*limits + len(pod.Spec.InitContainers)*resources
}

// comparablePod denies a pod that takes long to compare with LimitRanges, or cannot be.
func comparablePod(a *plugin.Attributes, pod *corev1.Pod, ranges []*corev1.LimitRange) plugin.Answer {
	if len(ranges) == 0 {
		return plugin.Answer{}
	}
	if comparisons(pod, ranges) > maxComparisons {
		return a.Forbid("the pod has too many containers to compare with the limits of its namespace")
	}
	fine := pod.Spec.Resources == nil || areComputable(pod.Spec.Resources.Requests, pod.Spec.Resources.Limits)
	visitContainers(&pod.Spec, func(c *corev1.Container, _ []any) {
		fine = fine && areComputable(c.Resources.Requests, c.Resources.Limits)
	})
	if !fine {
		return a.Forbid("%w", errTooLarge)
	}
	return plugin.Answer{}
}
