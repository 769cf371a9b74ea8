// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// loadMutating reports whether the policies are valid.
func (s *policySubject) loadMutating(t *testing.T, policies []*mutating.Policy, bindings []*mutating.PolicyBinding, params ...*unstructured.Unstructured) bool {
	t.Helper()
	objects := &manifest.Objects{Params: inRegistry(params), CustomResources: customResources}
	for _, p := range policies {
		objects.MutatingPolicies = append(objects.MutatingPolicies, manifest.MutatingPolicy{MutatingAdmissionPolicy: *p, Origin: manifest.Origin{Object: "p/" + p.Name}})
	}
	for _, b := range bindings {
		objects.MutatingPolicyBindings = append(objects.MutatingPolicyBindings, manifest.MutatingPolicyBinding{MutatingAdmissionPolicyBinding: *b, Origin: manifest.Origin{Object: "b/" + b.Name}})
	}
	if !s.loadObjects(objects) {
		return false
	}
	s.cluster.Stored = stored(params)
	return true
}

// mutate returns what the policies came to, and the object that they have made, as JSON.
func (s *policySubject) mutate(t *testing.T, a *policyAdmission) (decided, []byte) {
	t.Helper()
	response := s.answer(t, a, chain.Mutating)
	d := decided{Allowed: response.Allowed, Code: response.Code, Reason: response.Reason, Message: unindented(response.Message)}
	if a.New == nil {
		if len(response.Patch) > 0 {
			t.Errorf("a patch of nothing: %s", response.Patch)
		}
		return d, nil
	}
	object, err := json.Marshal(a.New)
	if err != nil {
		t.Fatal(err)
	}
	if !response.Allowed || len(response.Patch) == 0 {
		return d, object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	if object, err = patch.Apply(object); err != nil {
		t.Fatalf("%v: %s", err, response.Patch)
	}
	return d, object
}

// strictly decodes a pod as the API server does after each mutation.
func strictly(object []byte) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	return p, decodeStrictly(object, p)
}
