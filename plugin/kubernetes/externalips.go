// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// DenyServiceExternalIPs denies Services with external IPs that they did not have before:
// who may create Services could take traffic to any address.
func DenyServiceExternalIPs() plugin.Plugin {
	return unconfigured("DenyServiceExternalIPs", externalIPs{}, plugin.Rule("", "v1", []string{"services"}, "CREATE", "UPDATE"))
}

type externalIPs struct{}

func (externalIPs) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !a.Is("", "services") || a.Operation() == admissionv1.Delete {
		return plugin.Answer{}, nil
	}
	service, err := plugin.Decode[corev1.Service](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if service == nil {
		return plugin.Answer{}, missing("Service")
	}
	old, err := plugin.Decode[corev1.Service](a.OldObject())
	if err != nil {
		return plugin.Answer{}, err
	}
	for _, ip := range service.Spec.ExternalIPs {
		if old == nil || !slices.Contains(old.Spec.ExternalIPs, ip) {
			return a.Forbid("Use of external IPs is denied by admission control"), nil
		}
	}
	return plugin.Answer{}, nil
}
