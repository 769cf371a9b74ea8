// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// ExtendedResourceToleration has pods that request an extended resource, such as
// example.com/device, tolerate the taint of that name with effect NoSchedule: nodes that
// have the resource can be kept for them.
func ExtendedResourceToleration() plugin.Plugin {
	return unconfigured("ExtendedResourceToleration", extendedResource{}, podRules()...)
}

type extendedResource struct{}

func (extendedResource) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	resources := map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if len(resources) <= maxTolerations && !resources[string(name)] && isExtendedResource(string(name)) {
					resources[string(name)] = true
				}
			}
		}
	}
	if len(resources) == 0 {
		return plugin.Answer{}, nil
	}
	if len(pod.Spec.Tolerations)+len(resources) > maxTolerations {
		return a.Forbid("a pod, those for its extended resources included, may have at most %d tolerations", maxTolerations), nil
	}
	tolerations := slices.Clone(pod.Spec.Tolerations)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		toleration := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		tolerations = withToleration(tolerations, &toleration)
	}
	return withTolerations(pod, tolerations), nil
}

// withToleration adds a toleration, or puts it in the place of all that differ from it in
// their seconds at most.
func withToleration(list []corev1.Toleration, t *corev1.Toleration) []corev1.Toleration {
	there := false
	for i := range list {
		if list[i].MatchToleration(t) {
			list[i], there = *t, true
		}
	}
	if there {
		return list
	}
	return append(list, *t)
}

const (
	requestsPrefix = "requests." // of the names that quotas have for requests
	nativeDomain   = "kubernetes.io/"
)

// isExtendedResource goes by the name: it has a domain that is not Kubernetes' own, and can
// be the name of a quota for its requests.
func isExtendedResource(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, nativeDomain) || strings.HasPrefix(name, requestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(requestsPrefix+name)) == 0
}
