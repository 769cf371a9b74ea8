// SPDX-License-Identifier: Apache-2.0

package exempt

import "github.com/admission-dispatcher/dispatcher/codec"

// ConfiguresAdmission reports whether the review is of what configures admission
// itself. kube-apiserver sends that to no webhook, so that none can make itself
// irremovable.
func ConfiguresAdmission(r *codec.Review) bool {
	return string(r.Resource.Group) == "admissionregistration.k8s.io" && configuresAdmission(r.Resource.Resource)
}

// IsAuthReview reports whether the review is of a review of authentication or
// authorization. From 1.37 on kube-apiserver sends those to no webhook, so that
// admission cannot lock a cluster out; older ones do.
func IsAuthReview(r *codec.Review) bool {
	switch string(r.Resource.Group) {
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
