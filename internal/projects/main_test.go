// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shipped = `
apiVersion: v1
kind: Namespace
metadata: {name: project}
---
apiVersion: v1
kind: Secret
metadata: {name: project}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: project}
webhooks:
- name: labelled.example.com
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  namespaceSelector: {matchExpressions: [{key: team, operator: Exists}, {key: disabled, operator: DoesNotExist}]}
  objectSelector: {matchLabels: {app: x}}
  sideEffects: None
  admissionReviewVersions: [v1]
- name: cluster.example.com
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], operations: [DELETE], scope: Cluster}]
  sideEffects: None
  admissionReviewVersions: [v1]
- name: silent.example.com
  clientConfig: {service: {name: a, namespace: b}}
  sideEffects: None
  admissionReviewVersions: [v1]
`

// E21 The table says of each file what becomes of it.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.yaml": shipped, "wrong.yaml": strings.Replace(shipped, "sideEffects: None", "sideEffects: Some", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, []string{filepath.Join(dir, "good.yaml"), filepath.Join(dir, "wrong.yaml")}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"| good | loads, 2 skipped | 3/0 | refused:", "| 2/3 |", "| wrong | 1 problems | 3/0 |", "| sum | 1 problems | 6/0 | refused: 2 files | 2/6 |", "wrong.yaml: ValidatingWebhookConfiguration/project: webhooks[0].sideEffects",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
	if err := run(&out, nil); err == nil {
		t.Error("no file is no error")
	}
}
