// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

const paramsRegistry = `
-- policies.yaml --
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  matchConditions: [{name: some, expression: "params != null"}]
  validations: [{expression: "params == null || NAMESPACE"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b, annotations: {dispatcher.dev/params: WHERE}}
spec: {policyName: p, validationActions: [Deny], paramRef: {name: a, namespace: shop, parameterNotFoundAction: Deny}}
-- params.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
data: {a: VALUE}
-- clusters.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: api}
spec: {authentication: {certificate: {commonNames: [api]}}, kubeconfigFile: api.kubeconfig}
-- api.kubeconfig --
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://api.example.com"}}]
users: [{name: u, user: {tokenFile: token}}]
-- token --
t
`

// paramsEntry compiles the registry with words replaced.
func paramsEntry(t *testing.T, replaced ...string) *chain.Entry {
	t.Helper()
	h := home{t, t.TempDir()}
	h.write(txtar.Parse([]byte(strings.NewReplacer(append(replaced, "WHERE", "Registry", "NAMESPACE", "true", "VALUE", "b")...).Replace(paramsRegistry))).Files)
	compiled, problems, _ := h.compile(compile.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled.Clusters["api"].Validating.Webhooks[0]
}

// H12 H14 A cluster is asked for what an expression or a paramRef looks at there, and for
// nothing else.
func TestObjectsThatPoliciesNeed(t *testing.T) {
	maps, namespaces := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	for _, row := range []struct {
		replaced []string
		want     []schema.GroupVersionResource
	}{
		{nil, nil},
		{[]string{"WHERE", "Cluster"}, []schema.GroupVersionResource{maps}},
		{[]string{"NAMESPACE", "namespaceObject.metadata.name == 'a'"}, []schema.GroupVersionResource{namespaces}},
		{[]string{"NAMESPACE", "namespaceObject.status.phase == 'a'", "WHERE", "Cluster"}, []schema.GroupVersionResource{namespaces, maps}},
	} {
		if got := paramsEntry(t, row.replaced...).Needs.Objects; !slices.Equal(got, row.want) {
			t.Errorf("%v needs %v", row.replaced, got)
		}
	}
}

// H11 Conditions that see params are the Hook's to evaluate: the matcher knows nothing of
// them, and the status page shows them.
func TestConditionsOfParams(t *testing.T) {
	e := paramsEntry(t)
	if len(e.Spec.MatchConditions) != 1 || e.Spec.MatchConditions[0].Name != "some" {
		t.Errorf("they are %v", e.Spec.MatchConditions)
	}
}

// H14 A list of namespaces says the labels of one, and of no other unless it has defaults;
// never which ones there are.
func TestListedNamespacesAsObjects(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"labels: {shop: {team: a}}":   {"shop": `{"metadata":{"labels":{"kubernetes.io/metadata.name":"shop","team":"a"},"name":"shop"}}`, "bank": ""},
		"defaultLabels: {team: none}": {"bank": `{"metadata":{"labels":{"kubernetes.io/metadata.name":"bank","team":"none"},"name":"bank"}}`},
	} {
		h := home{t, t.TempDir()}
		h.put("cluster.yaml", "{apiVersion: dispatcher.dev/v1alpha1, kind: Cluster, metadata: {name: list}, spec: {authentication: {anonymous: true}, namespaces: {"+text+"}}}")
		compiled, problems, _ := h.compile(compile.Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		objects := compiled.Clusters["list"].Objects(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		for name, says := range want {
			stored, err := objects.Get("", name, time.Time{})
			if err != nil || (stored == nil) != (says == "") || stored != nil && (string(stored.JSON) != says || stored.Name != name || stored.Labels["kubernetes.io/metadata.name"] != name) {
				t.Errorf("%s: %+v, %v", name, stored, err)
			}
		}
		if list, err := objects.List("", time.Time{}); list != nil || err == nil {
			t.Errorf("they are %v, %v", list, err)
		}
	}
}

// H13 Another param in the registry is another version of what the policy comes to.
func TestParamsAreOfTheVersion(t *testing.T) {
	one, same, other, elsewhere := paramsEntry(t).Sum(), paramsEntry(t).Sum(), paramsEntry(t, "VALUE", "c").Sum(), paramsEntry(t, "WHERE", "Cluster").Sum()
	if !bytes.Equal(one, same) {
		t.Error("one registry has two versions")
	}
	if bytes.Equal(one, other) || bytes.Equal(one, elsewhere) {
		t.Error("two registries have one version")
	}
}
