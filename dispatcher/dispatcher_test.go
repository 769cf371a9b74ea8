// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// B18: what is never dispatched, in which version of Kubernetes: what configures admission,
// an auth review from 1.37 on, and nothing else but what a rule lets pass.
func TestBypassByKind(t *testing.T) {
	older, newer := chain.KubernetesVersion{Major: 1, Minor: 36}, chain.KubernetesVersion{Major: 1, Minor: 37}
	for _, c := range []struct {
		group, resource string
		version         chain.KubernetesVersion
		want            string
	}{
		{"", "pods", older, ""},
		{"", "pods", newer, ""},
		{"authentication.k8s.io", "tokenreviews", chain.KubernetesVersion{}, ""},
		{"authentication.k8s.io", "tokenreviews", older, ""},
		{"authentication.k8s.io", "tokenreviews", newer, exemptKind},
		{"authorization.k8s.io", "subjectaccessreviews", newer, exemptKind},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", older, exemptKind},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", newer, exemptKind},
		{"coordination.k8s.io", "leases", newer, "leases"},
	} {
		review := &codec.Review{Operation: codec.Create, User: codec.UserInfo{Username: []byte("ann")}}
		if c.want == "leases" {
			review.User.Username = []byte("robot")
		}
		review.Resource.Group, review.Resource.Resource = []byte(c.group), []byte(c.resource)
		cluster := &chain.Cluster{Declared: c.version, Bypass: exempt.Compile([]exempt.Rule{{Name: "leases", Users: []string{"robot"}}})}
		if rule, ok := bypass(Request{Review: review, Cluster: cluster}); rule != c.want || ok != (c.want != "") {
			t.Errorf("%s/%s of %+v: the rule is %q, %v, want %q", c.group, c.resource, c.version, rule, ok, c.want)
		}
	}
}
