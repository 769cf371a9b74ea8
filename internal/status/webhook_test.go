// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

const policies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}
  validations: [{expression: "object.spec.replicas > 1"}, {expression: "object.spec.replicas < int(params.data.most)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: replicas, validationActions: [Warn, Audit], paramRef: {name: most, namespace: shop, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: most, namespace: shop}
data: {most: "9"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}
  reinvocationPolicy: Never
  mutations:
  - {patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "remove", path: "/metadata/labels/a"}]'}}
  - {patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: labels}
`

// A policy with a binding says what it decides, and that no Target serves it.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	w.write("policies.yaml", policies)
	s := w.load()
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	got := map[string]status.Policy{}
	for _, w := range s.Webhooks {
		if w.Policy == nil {
			continue
		}
		if got[w.Configuration+"/"+w.Name] = *w.Policy; w.Kind != "policy" || w.Target != "" {
			t.Errorf("%s is a %s with the target %q", w.Name, w.Kind, w.Target)
		}
		if len(w.Policy.Version) < 8 {
			t.Errorf("%s has the version %q", w.Name, w.Policy.Version)
		}
	}
	want := map[string]status.Policy{
		"replicas/everywhere": {Validations: []string{"object.spec.replicas > 1", "object.spec.replicas < int(params.data.most)"},
			Mutations: []string{}, Actions: []string{"Warn", "Audit"}, Params: "ConfigMap of the registry"},
		"labels/all": {Validations: []string{}, Actions: []string{}, Mutations: []string{
			`[JSONPatch{op: "remove", path: "/metadata/labels/a"}]`, `Object{metadata: Object.metadata{labels: {"a": "b"}}}`}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(status.Policy{}, "Version")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := got["replicas/everywhere"], got["labels/all"]; a.Version == b.Version {
		t.Error("different policies have one version")
	}
}
