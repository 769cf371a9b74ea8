// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestB18Exempt(t *testing.T) {
	tests := []struct {
		group, resource, sub string
		want                 bool
	}{
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", true},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", "", true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", "status", true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", true},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicies", "", true},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "", true},
		{"authentication.k8s.io", "tokenreviews", "", true},
		{"authentication.k8s.io", "selfsubjectreviews", "", true},
		{"authorization.k8s.io", "subjectaccessreviews", "", true},
		{"authorization.k8s.io", "localsubjectaccessreviews", "", true},
		{"authorization.k8s.io", "selfsubjectaccessreviews", "", true},
		{"authorization.k8s.io", "selfsubjectrulesreviews", "", true},
		{"", "tokenreviews", "", false},
		{"authentication.k8s.io", "subjectaccessreviews", "", false},
		{"admissionregistration.k8s.io.example.com", "mutatingwebhookconfigurations", "", false},
		{"rbac.authorization.k8s.io", "clusterroles", "", false},
		{"", "serviceaccounts", "token", false},
		{"", "pods", "", false},
	}
	for _, tt := range tests {
		t.Run("B18 "+tt.group+"/"+tt.resource+"/"+tt.sub, func(t *testing.T) {
			if got := match.IsExempt(reviewOf(codec.Create, tt.group, "v1", tt.resource, tt.sub, "")); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
