// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// SecurityContextDeny denies pods that choose their users, groups or SELinux options.
// kube-apiserver had it until 1.29; PodSecurity is what came of it.
func SecurityContextDeny() plugin.Plugin {
	return unconfigured("SecurityContextDeny", securityContext{}, podRules()...)
}

type securityContext struct{}

func (securityContext) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	said := chosen(&pod.Spec)
	if said == "" {
		return plugin.Answer{}, nil
	}
	status := apierrors.NewForbidden(a.Resource().GroupResource(), pod.Name, errors.New(said+" is forbidden")).Status()
	return plugin.Answer{Denied: &status}, nil
}

// chosen names the first field that a pod may not set; "": it sets none.
func chosen(spec *corev1.PodSpec) string {
	if s := spec.SecurityContext; s != nil {
		const of = "pod.Spec.SecurityContext."
		switch {
		case s.SupplementalGroups != nil:
			return of + "SupplementalGroups"
		case s.SELinuxOptions != nil:
			return of + "SELinuxOptions"
		case s.RunAsUser != nil:
			return of + "RunAsUser"
		case s.FSGroup != nil:
			return of + "FSGroup"
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			switch s := containers[i].SecurityContext; {
			case s == nil:
			case s.SELinuxOptions != nil:
				return "SecurityContext.SELinuxOptions"
			case s.RunAsUser != nil:
				return "SecurityContext.RunAsUser"
			}
		}
	}
	return ""
}
