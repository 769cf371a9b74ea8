// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const printedConfiguration = `
webhooks:
- name: one.admission-dispatcher.dispatcher.dev
  clientConfig: {url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}
  rules:
  - {operations: [CREATE, UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments, replicasets], scope: Namespaced}
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
  failurePolicy: Fail
  matchPolicy: Equivalent
  namespaceSelector: {matchLabels: {team: a}}
  matchConditions: [{name: x, expression: "true"}, {name: "y", expression: "!false"}]
  sideEffects: NoneOnDryRun
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
- name: two.admission-dispatcher.dispatcher.dev
  clientConfig: {url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [services]}]
  sideEffects: NoneOnDryRun
  admissionReviewVersions: [v1]
`

// What means the same is no difference, what an enforcer adds is none, and all else is one.
func TestDifferences(t *testing.T) {
	const selector = `namespaceSelector: {matchLabels: {team: a}}`
	for _, c := range []struct{ from, to, says, added string }{
		{from: "operations: [CREATE, UPDATE]", to: "operations: [UPDATE, CREATE]"},
		{from: "resources: [deployments, replicasets]", to: "resources: [replicasets, deployments]"},
		{from: "  matchPolicy: Equivalent\n"},
		{from: "  failurePolicy: Fail\n"},
		{from: "  timeoutSeconds: 10\n"},
		{from: "resources: [pods]}", to: `resources: [pods], scope: "*"}`},
		{from: "{matchLabels: {team: a}}", to: "{matchExpressions: [{key: team, operator: In, values: [a]}]}"},
		{from: `[{name: x, expression: "true"}, {name: "y", expression: "!false"}]`, to: `[{name: "y", expression: "!false"}, {name: x, expression: "true"}]`},
		{from: "  matchPolicy", to: "  objectSelector: {}\n  matchPolicy"},

		{from: "timeoutSeconds: 10", to: "timeoutSeconds: 5", says: `timeoutSeconds is "5", not "10"`},
		{from: "caBundle: Y2E=", to: "caBundle: Y2I=", says: "caBundle is another one"},
		{from: "caBundle: Y2E=", to: "", says: "caBundle is another one"},
		{from: "clusters/east", to: "clusters/west", says: "url is another one"},
		{from: "https://d.example.com/v1/clusters/east/validate", to: "https://d.example.com/v1/clusters/east/5f2b9c04d1e84a7786c3f0aa91be6d28c0ffee17/validate"},
		{from: "https://d.example.com/v1/clusters/east/validate", to: "https://e.example.com/v1/clusters/east/5f2b9c04d1e84a7786c3f0aa91be6d28c0ffee17/validate", says: "url is another one"},
		{from: `{url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}`, to: "{service: {namespace: a, name: b, path: /v1/clusters/east/validate}, caBundle: Y2I=}"},
		{from: `{url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}`, to: "{service: {namespace: a, name: b, path: /v1/clusters/east/5f2b9c04d1e84a7786c3f0aa91be6d28c0ffee17/validate}, caBundle: Y2I=}"},
		{from: `{url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}`, to: "{service: {namespace: a, name: b, path: /validate}}", says: "path is another one"},
		{from: `{url: "https://d.example.com/v1/clusters/east/validate", caBundle: Y2E=}`, to: "{service: {namespace: a, name: b}}", says: "path is another one"},
		{from: "failurePolicy: Fail", to: "failurePolicy: Ignore", says: `failurePolicy is "Ignore", not "Fail"`},
		{from: "matchPolicy: Equivalent", to: "matchPolicy: Exact", says: "matchPolicy"},
		{from: "resources: [pods]", to: "resources: [pods, services]", says: "rules lack CREATE of pods in /v1"},
		{from: "scope: Namespaced", to: `scope: "*"`, says: "(Namespaced)"},
		{from: `{name: "y", expression: "!false"}`, to: `{name: "y", expression: "false"}`, says: "the matchCondition y is another one"},
		{from: `, {name: "y", expression: "!false"}`, says: "matchConditions lack y"},
		{from: `{name: x, expression: "true"}`, to: `{name: x, expression: "true"}, {name: "z", expression: "false"}`, says: "matchConditions have z"},
		{from: "team: a", to: "team: b", says: "namespaceSelector lacks team In (a)"},
		{from: "two.admission", to: "three.admission", says: "two.admission-dispatcher.dispatcher.dev is missing"},

		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: control-plane, operator: DoesNotExist}]}`, added: "control-plane DoesNotExist"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: kubernetes.azure.com/managedby, operator: NotIn, values: [aks]}]}`, added: "kubernetes.azure.com/managedby NotIn (aks)"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, gke-gmp-system, gke-managed-cim]}]}`, added: "kubernetes.io/metadata.name"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, shop]}]}`, says: "which is not ours"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: control-plane, operator: Exists}]}`, says: "which is not ours"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: control-plane, operator: NotIn, values: ["false"]}]}`, says: "which is not ours"},
		{from: selector, to: `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: skip, operator: DoesNotExist}]}`, says: "which is not ours"},
		{from: "  matchPolicy", to: "  objectSelector: {matchExpressions: [{key: control-plane, operator: DoesNotExist}]}\n  matchPolicy", says: "objectSelector has control-plane"},
	} {
		if !strings.Contains(printedConfiguration, c.from) {
			t.Fatalf("there is no %q", c.from)
		}
		wants, has := configurationOf(t, printedConfiguration), configurationOf(t, strings.Replace(printedConfiguration, c.from, c.to, 1))
		found, added := differences(has, wants, true)
		if c.says == "" && len(found) > 0 || c.says != "" && !strings.Contains(strings.Join(found, "\n"), c.says) {
			t.Errorf("%s -> %s: %q, want %q", c.from, c.to, found, c.says)
		}
		if (c.added != "") != (len(added) > 0) || !strings.Contains(strings.Join(added, "\n"), c.added) {
			t.Errorf("%s -> %s: added %q, want %q", c.from, c.to, added, c.added)
		}
	}
	wants, has := configurationOf(t, printedConfiguration), configurationOf(t, printedConfiguration)
	has.hooks[0], has.hooks[1] = has.hooks[1], has.hooks[0]
	if found, _ := differences(has, wants, false); len(found) > 0 {
		t.Errorf("validating webhooks have no order: %q", found)
	}
	if found, _ := differences(has, wants, true); len(found) != 1 {
		t.Errorf("mutating webhooks have one: %q", found)
	}
}

func configurationOf(t *testing.T, text string) *configuration {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := read(document)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Who owns webhooks of the object does not any more, and we do; labels stay whose they are.
func TestTakeOver(t *testing.T) {
	entry := func(manager, operation, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: registrationVersion, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
		if err := json.Unmarshal([]byte(fields), e.FieldsV1); err != nil {
			t.Fatal(err)
		}
		return e
	}
	now := metav1.NewTime(time.Unix(1, 0))
	taken, ok, err := takeOver([]metav1.ManagedFieldsEntry{
		entry("kubectl", "Update", `{"f:metadata":{"f:labels":{"f:team":{}}},"f:webhooks":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`),
		entry("somebody", "Apply", `{"f:webhooks":{"k:{\"name\":\"b\"}":{}}}`),
		entry(fieldManager, "Apply", `{"f:webhooks":{"k:{\"name\":\"b\"}":{"f:name":{}}}}`),
	}, now)
	if err != nil || !ok || len(taken) != 2 {
		t.Fatal(taken, ok, err)
	}
	text := func(e metav1.ManagedFieldsEntry) string {
		out, err := json.Marshal(e.FieldsV1)
		if err != nil {
			t.Fatal(err)
		}
		return e.Manager + " " + string(out)
	}
	if got, want := text(taken[0]), `kubectl {"f:metadata":{"f:labels":{"f:team":{}}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := text(taken[1]), fieldManager+` {"f:webhooks":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, ok, err := takeOver(taken, now); ok || err != nil {
		t.Errorf("there is nothing left to take: %t (%v)", ok, err)
	}
}
