// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// source is what would watch the namespaces of a cluster. Compiling calls nothing of it.
type source struct {
	chain.NamespaceSource
	cluster string
}

// TestSelectedLabels is what is kept of namespaces: what selectors name, also that
// of a previous version which still serves.
func TestSelectedLabels(t *testing.T) {
	h := newHome(t)
	h.put("cluster.yaml", `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: kubeconfig}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: without-api}
spec: {authentication: {certificate: {commonNames: [without-api]}}, namespaces: {}}
`)
	h.put("kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users: [{name: a, user: {token: abc}}]
`)
	var asked [][]string
	compiler := compile.NewCompiler(compile.Options{Namespaces: func(cluster string, _ manifest.KubeAccess, labels []string) chain.NamespaceSource {
		asked = append(asked, labels)
		return &source{cluster: cluster}
	}})
	var current *compile.Compiled
	webhook := func(resource, key string) {
		h.put("webhook.yaml", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policies}
webhooks:
- name: tiers.example.com
  clientConfig: {url: "https://hook.example.com/"}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [%s]}]
  namespaceSelector: {matchExpressions: [{key: %s, operator: Exists}, {key: kubernetes.io/metadata.name, operator: Exists}]}
`, resource, key))
		reader := manifest.Reader{Sources: manifest.Directories(h.dir)}
		next, problems, _ := compiler.Compile(reader.Read(t.Context()), current, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		current = next
		if s := next.Sources; len(s) != 1 || any(s[0]) != any(next.Clusters["east"].Namespaces) || s[0].(*source).cluster != "east" {
			t.Errorf("sources %v, that of the cluster %v", s, next.Clusters["east"].Namespaces)
		}
		if _, is := next.Clusters["without-api"].Namespaces.(*source); is {
			t.Error("a list of namespaces was replaced")
		}
	}
	webhook("pods", "tier")
	webhook("namespaces", "team") // asked about those that are deleted
	webhook("namespaces", "other")
	want := [][]string{{"tier"}, {"team", "tier"}, {"other", "team"}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVersions is which clusters send auth reviews.
func TestVersions(t *testing.T) {
	for text, exempt := range map[string]bool{
		"1.37": true, "v1.37.0": true, "v1.40.2-eks-1": true, "2.0": true,
		"1.36": false, "v1.36.3": false, "v1.9.11+abc": false, "": false,
	} {
		h := newHome(t)
		h.put("cluster.yaml", fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubernetesVersion: %q}
`, text))
		if got := h.good(compile.Options{}).Clusters["east"].ExemptsAuthReviews(); got != exempt {
			t.Errorf("%q: %t", text, got)
		}
	}
}
