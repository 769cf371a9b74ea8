// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/adopt"
	"github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// configuration is one of a cluster, with metadata besides the name.
func configuration(t *testing.T, kind, name, metadata string) unstructured.Unstructured {
	t.Helper()
	text := `apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `
metadata: {name: ` + name + metadata + `}
webhooks:
- name: a.example.com
  clientConfig: {service: {namespace: policies, name: guard, port: 443}}
  rules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments], scope: "*"}]
  sideEffects: None
  admissionReviewVersions: [v1]
  matchConditions: [{name: kept, expression: "request.name != 'x'"}]
- name: b.example.com
  clientConfig: {url: "https://webhooks.example.com/b"}
  sideEffects: None
  admissionReviewVersions: [v1]
`
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// patched applies a patch as the API server does.
func patched(t *testing.T, original, patch []byte) ([]byte, admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	out, err := strategicpatch.StrategicMergePatch(original, patch, c)
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, c
}

// The patches leave each webhook to the dispatcher, keep all else, whatever order webhooks
// have by then, and take it back entirely.
func TestPatches(t *testing.T) {
	o := configuration(t, "ValidatingWebhookConfiguration", "policies", "")
	r, err := adopt.New("prod", []unstructured.Unstructured{o})
	if err != nil || len(r.Plans) != 1 || len(r.Skipped) != 0 {
		t.Fatal(r, err)
	}
	hooks := o.Object["webhooks"].([]any)
	slices.Reverse(hooks)
	original, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	left, c := patched(t, original, r.Plans[0].Neutralise)
	if len(c.Webhooks) != 2 {
		t.Fatalf("%s", left)
	}
	for i := range c.Webhooks {
		w := admissionregistrationv1.MutatingWebhook{MatchConditions: c.Webhooks[i].MatchConditions}
		if !lint.Neutralised(&w) {
			t.Errorf("%s is still called: %s", c.Webhooks[i].Name, left)
		}
	}
	if got := conditions(c); got["a.example.com"] != 2 || got["b.example.com"] != 1 {
		t.Errorf("a condition of its own is lost: %s", left)
	}
	_, back := patched(t, left, r.Plans[0].TakeBack)
	_, before := patched(t, original, []byte("{}"))
	if got, want := conditions(back), conditions(before); !maps.Equal(got, want) {
		t.Errorf("%v conditions are left, want %v", got, want)
	}
}

// conditions are how many each webhook has.
func conditions(c admissionregistrationv1.ValidatingWebhookConfiguration) map[string]int {
	n := map[string]int{}
	for i := range c.Webhooks {
		n[c.Webhooks[i].Name] = len(c.Webhooks[i].MatchConditions)
	}
	return n
}

// What is printed is what the registry takes, for the cluster alone, and W8 knows it by the
// name that it has in the cluster.
func TestRegistrationIsTaken(t *testing.T) {
	r, err := adopt.New("prod", []unstructured.Unstructured{
		configuration(t, "ValidatingWebhookConfiguration", "policies", ""), configuration(t, "MutatingWebhookConfiguration", "policies", ""),
	})
	if err != nil || len(r.Plans) != 2 {
		t.Fatal(r, err)
	}
	directory := t.TempDir()
	text := []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: other}\nspec: {authentication: {certificate: {commonNames: [other]}}}\n---\n" +
		"apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  authentication: {certificate: {commonNames: [prod]}}\n  services: [{names: [\"*/*\"], gateway: \"gateway.example.com:443\"}]\n")
	for _, p := range r.Plans {
		text = append(append(text, "---\n"...), p.Registration...)
		if !slices.Equal(p.Services, []string{"policies/guard"}) {
			t.Errorf("%v", p.Services)
		}
	}
	if err := os.WriteFile(directory+"/all.yaml", text, 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, problems, _ := registry.Validate(registry.Settings{Sources: manifest.Directories(directory)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for cluster, want := range map[string]int{"prod": 2, "other": 0} {
		c := snapshot.Clusters[cluster]
		if len(c.Validating.Webhooks) != want || len(c.Mutating.Webhooks) != want {
			t.Errorf("%s: %d and %d webhooks", cluster, len(c.Validating.Webhooks), len(c.Mutating.Webhooks))
		}
		for _, e := range slices.Concat(c.Validating.Webhooks, c.Mutating.Webhooks) {
			if !slices.Contains(adopt.Originals("prod", e.ID.Configuration), "policies") || len(e.Bindings) != 1 {
				t.Errorf("%s is bound by %v", e.ID.Configuration, e.Bindings)
			}
		}
	}
}

// What somebody writes again, or is not to be touched, is skipped with the reason. The page
// has each of them.
func TestSkipped(t *testing.T) {
	page, err := os.ReadFile("../docs/adopt.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range adopt.Controllers() {
		if !bytes.Contains(page, []byte("| "+c.Name+" |")) {
			t.Errorf("docs/adopt.md does not have %s", c.Name)
		}
	}
	for metadata, by := range map[string]string{
		", labels: {webhook.kyverno.io/managed-by: kyverno}":                      "Kyverno",
		", labels: {gatekeeper.sh/system: \"yes\"}":                               "Gatekeeper",
		", annotations: {cert-manager.io/inject-ca-from: ns/name}":                "cainjector",
		", annotations: {service.beta.openshift.io/inject-cabundle: \"true\"}":    "service CA",
		", labels: {istio.io/rev: default}":                                       "Istio",
		", labels: {olm.owner: x}":                                                "Lifecycle",
		", labels: {addonmanager.kubernetes.io/mode: Reconcile}":                  "addon manager",
		", labels: {kubernetes.azure.com/managedby: aks}":                         "AKS",
		", ownerReferences: [{apiVersion: v1, kind: Namespace, name: a, uid: b}]": "ownerReferences",
		", labels: {dispatcher.dev/mirror: \"true\"}":                             "is mirrored",
	} {
		r, err := adopt.New("prod", []unstructured.Unstructured{configuration(t, "ValidatingWebhookConfiguration", "one", metadata)})
		if err != nil || len(r.Plans) != 0 || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, by) {
			t.Errorf("%s: %+v %v", metadata, r, err)
		}
	}
	for _, name := range []string{"kyverno-resource-validating-webhook-cfg", "gatekeeper-validating-webhook-configuration", "istio-validator"} {
		if r, _ := adopt.New("prod", []unstructured.Unstructured{configuration(t, "ValidatingWebhookConfiguration", name, "")}); len(r.Skipped) != 1 {
			t.Errorf("%s is adopted", name)
		}
	}
	left := configuration(t, "ValidatingWebhookConfiguration", "one", "")
	hook := left.Object["webhooks"].([]any)[1].(map[string]any)
	hook["matchConditions"] = []any{map[string]any{"name": "dispatched", "expression": "false"}}
	ours := configuration(t, "ValidatingWebhookConfiguration", "two", "")
	ours.Object["webhooks"].([]any)[0].(map[string]any)["name"] = "validate.admission-dispatcher.dispatcher.dev"
	if r, _ := adopt.New("prod", []unstructured.Unstructured{left, ours}); len(r.Skipped) != 2 {
		t.Errorf("%+v", r)
	}
	unknown := configuration(t, "ValidatingWebhookConfiguration", "three", "")
	unknown.Object["webhooks"].([]any)[0].(map[string]any)["selector"] = "new"
	if _, err := adopt.New("prod", []unstructured.Unstructured{unknown}); err == nil {
		t.Error("a field that is not known is dropped")
	}
}
