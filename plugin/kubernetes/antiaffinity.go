// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// LimitPodHardAntiAffinityTopology denies pods that must not be scheduled beside others in a
// topology larger than a node: one pod could keep all others from a whole zone.
func LimitPodHardAntiAffinityTopology() plugin.Plugin {
	return unconfigured("LimitPodHardAntiAffinityTopology", antiAffinity{}, podRules()...)
}

type antiAffinity struct{}

func (antiAffinity) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil || pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return plugin.Answer{}, err
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			status := apierrors.NewForbidden(a.Resource().GroupResource(), pod.Name, fmt.Errorf(
				"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed", term.TopologyKey, corev1.LabelHostname)).Status()
			return plugin.Answer{Denied: &status}, nil
		}
	}
	return plugin.Answer{}, nil
}
