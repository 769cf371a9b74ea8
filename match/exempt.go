// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/admission-dispatcher/dispatcher/codec"

// IsExempt reports whether the review's resource is never sent to webhooks, by
// kube-apiserver neither: what configures admission itself, so that a webhook
// cannot make itself irremovable, and since 1.37 the reviews of authentication
// and authorization, so that admission cannot lock a cluster out.
func IsExempt(r *codec.Review) bool {
	switch string(r.Resource.Group) {
	case "admissionregistration.k8s.io":
		return configuresAdmission(r.Resource.Resource)
	case "authentication.k8s.io":
		return isAuthenticationReview(r.Resource.Resource)
	case "authorization.k8s.io":
		return isAuthorizationReview(r.Resource.Resource)
	}
	return false
}

func configuresAdmission(resource []byte) bool {
	for _, r := range AdmissionResources() {
		if string(resource) == r {
			return true
		}
	}
	return false
}

// AdmissionResources are the resources of group admissionregistration.k8s.io that
// are exempt.
func AdmissionResources() [6]string {
	return [...]string{
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	}
}

func isAuthenticationReview(resource []byte) bool {
	switch string(resource) {
	case "tokenreviews", "selfsubjectreviews":
		return true
	}
	return false
}

func isAuthorizationReview(resource []byte) bool {
	switch string(resource) {
	case "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews":
		return true
	}
	return false
}
