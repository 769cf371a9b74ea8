// SPDX-License-Identifier: Apache-2.0

package exempt_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

func TestB18Exempt(t *testing.T) {
	tests := []struct {
		group, resource, sub string
		want                 string
	}{
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "configures"},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "configures"},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", "", "configures"},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", "status", "configures"},
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "configures"},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicies", "", "configures"},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "", "configures"},
		{"authentication.k8s.io", "tokenreviews", "", "reviews"},
		{"authentication.k8s.io", "selfsubjectreviews", "", "reviews"},
		{"authorization.k8s.io", "subjectaccessreviews", "", "reviews"},
		{"authorization.k8s.io", "localsubjectaccessreviews", "", "reviews"},
		{"authorization.k8s.io", "selfsubjectaccessreviews", "", "reviews"},
		{"authorization.k8s.io", "selfsubjectrulesreviews", "", "reviews"},
		{"admissionregistration.k8s.io", "somethingelses", "", ""},
		{"", "tokenreviews", "", ""},
		{"authentication.k8s.io", "subjectaccessreviews", "", ""},
		{"admissionregistration.k8s.io.example.com", "mutatingwebhookconfigurations", "", ""},
		{"rbac.authorization.k8s.io", "clusterroles", "", ""},
		{"", "serviceaccounts", "token", ""},
		{"", "pods", "", ""},
	}
	for _, tt := range tests {
		t.Run("B18 "+tt.group+"/"+tt.resource+"/"+tt.sub, func(t *testing.T) {
			r := reviewOf(codec.Create, tt.group, "v1", tt.resource, tt.sub, "")
			if got := exempt.ConfiguresAdmission(r); got != (tt.want == "configures") {
				t.Errorf("it configures admission: %t", got)
			}
			if got := exempt.IsAuthReview(r); got != (tt.want == "reviews") {
				t.Errorf("it is an auth review: %t", got)
			}
		})
	}
}
