// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// PodTolerationRestriction gives new pods the default tolerations of their namespace, and
// denies pods with tolerations that its whitelist does not cover. A namespace has both in
// annotations; for one without them they are in the configuration.
func PodTolerationRestriction() plugin.Plugin {
	p := plugin.New("PodTolerationRestriction", podRules(), func(c *tolerationRestriction) (any, field.ErrorList) { return c, c.validate() })
	p.Lists = []schema.GroupVersionResource{namespaces}
	return p
}

// tolerationRestriction is a Configuration of podtolerationrestriction.admission.k8s.io/v1alpha1.
type tolerationRestriction struct {
	metav1.TypeMeta `json:",inline"`

	Default   []corev1.Toleration `json:"default,omitempty"`
	Whitelist []corev1.Toleration `json:"whitelist,omitempty"`
}

const (
	defaultTolerationsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations"
	whitelistAnnotation          = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

func (r *tolerationRestriction) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	var more []corev1.Toleration
	if a.Operation() == admissionv1.Create {
		list, set, answer, err := tolerationsOf(a, defaultTolerationsAnnotation)
		if err != nil || answer.Denied != nil {
			return answer, err
		}
		if !set {
			list = r.Default
		}
		more = slices.Clone(list)
	}
	if !isBestEffort(pod) {
		more = append(more, corev1.Toleration{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	merged := merge{tolerations: pod.Spec.Tolerations}
	if len(more) > 0 {
		var ok bool
		if merged, ok = mergeTolerations(pod.Spec.Tolerations, more); !ok {
			return tooManyTolerations(a), nil
		}
	}
	answer, err := r.whitelisted(a, merged.tolerations)
	if answer.Denied == nil {
		answer.Patch = merged.patch
	}
	return answer, err
}

func (r *tolerationRestriction) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	return r.whitelisted(a, pod.Spec.Tolerations)
}

// whitelisted denies tolerations that the whitelist does not cover. An empty one covers all.
func (r *tolerationRestriction) whitelisted(a *plugin.Attributes, tolerations []corev1.Toleration) (plugin.Answer, error) {
	if len(tolerations) == 0 {
		return plugin.Answer{}, nil
	}
	whitelist, set, answer, err := tolerationsOf(a, whitelistAnnotation)
	if err != nil || answer.Denied != nil {
		return answer, err
	}
	scope := "namespace"
	if !set {
		whitelist, scope = r.Whitelist, "cluster"
	}
	if len(whitelist) == 0 {
		return plugin.Answer{}, nil
	}
	if len(tolerations) > maxTolerations {
		return tooManyTolerations(a), nil
	}
	for i := range tolerations {
		if !isCovered(&tolerations[i], whitelist) {
			return denied(fmt.Errorf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope)), nil
		}
	}
	return plugin.Answer{}, nil
}

// tolerationsOf returns those in an annotation of the namespace, and whether it is set, or a
// denial.
func tolerationsOf(a *plugin.Attributes, annotation string) (list []corev1.Toleration, set bool, answer plugin.Answer, err error) {
	namespace, err := namespaceOf(a)
	if err != nil {
		return nil, false, answer, err
	}
	if namespace == nil {
		status := apierrors.NewNotFound(namespaces.GroupResource(), a.Namespace()).Status()
		return nil, false, plugin.Answer{Denied: &status}, nil
	}
	text, set := namespace.Annotations[annotation]
	if text == "" {
		return nil, set, answer, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, false, denied(err), nil
	}
	if len(list) > maxTolerations {
		return nil, false, tooManyTolerations(a), nil
	}
	return list, true, answer, nil
}

func tooManyTolerations(a *plugin.Attributes) plugin.Answer {
	return a.Forbid("a pod, those of its namespace included, and a whitelist may have at most %d tolerations", maxTolerations)
}

// isBestEffort reports whether the pod is of the class BestEffort, or says so: it requests
// no CPU and no memory, and has no limits of them.
func isBestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	some := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q := list[name]; q.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	if pod.Spec.Resources != nil {
		return !some(pod.Spec.Resources)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if some(&containers[i].Resources) {
				return false
			}
		}
	}
	return true
}
