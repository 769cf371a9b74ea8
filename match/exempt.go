// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/admission-dispatcher/dispatcher/codec"

// exempt are the resources that kube-apiserver never sends to webhooks: what
// configures admission itself, so that a webhook cannot make itself
// irremovable, and since 1.37 the reviews of authentication and authorization,
// so that admission cannot lock a cluster out.
var exempt = map[string]map[string]bool{
	"admissionregistration.k8s.io": {
		"validatingwebhookconfigurations":   true,
		"mutatingwebhookconfigurations":     true,
		"validatingadmissionpolicies":       true,
		"validatingadmissionpolicybindings": true,
		"mutatingadmissionpolicies":         true,
		"mutatingadmissionpolicybindings":   true,
	},
	"authentication.k8s.io": {
		"tokenreviews":       true,
		"selfsubjectreviews": true,
	},
	"authorization.k8s.io": {
		"localsubjectaccessreviews": true,
		"selfsubjectaccessreviews":  true,
		"selfsubjectrulesreviews":   true,
		"subjectaccessreviews":      true,
	},
}

// IsExempt reports whether the review's resource is never sent to webhooks.
func IsExempt(r *codec.Review) bool {
	return exempt[string(r.Resource.Group)][string(r.Resource.Resource)]
}
