// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

const policyPairs = `
-- cluster.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {anonymous: true}}
-- policies.yaml --
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: checks}
spec:
  failurePolicy: Ignore
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE], resourceNames: [web]}, {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
    excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE], resourceNames: [db]}]
  matchConditions: [{name: c, expression: "true"}]
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: in-shop}
spec:
  policyName: checks
  validationActions: [Deny]
  matchResources:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: ["*"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: changes}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/a'}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: changes}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: once}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/a'}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: once}
spec: {policyName: once}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: warn}
spec: {webhooks: ["checks/*"], mode: Warn}
-- plugins.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: Plugin
metadata: {name: pull}
spec:
  plugin: AlwaysPullImages
  timeout: 250ms
  reinvocationPolicy: Never
  failurePolicy: Ignore
  mode: Shadow
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods/ephemeralcontainers]}]
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: tolerations}, spec: {plugin: DefaultTolerationSeconds, timeout: 1ms}}
`

// H8 H21 K1 What a policy with its binding, and a plugin, is in a cluster's chain: everything
// that their objects say, and kube-apiserver's defaults.
func TestEntriesOfPoliciesAndPlugins(t *testing.T) {
	h := home{t, t.TempDir()}
	h.write(txtar.Parse([]byte(policyPairs)).Files)
	east := h.good(compile.Options{Plugins: compiledIn(t)}).Clusters["east"]
	of := func(c *chain.Chain, id hook.ID) *chain.Entry {
		for _, e := range c.Webhooks {
			if e.ID == id {
				return e
			}
		}
		t.Fatalf("there is no %v", id)
		return nil
	}
	said := func(e *chain.Entry) string {
		return fmt.Sprint(e.Noun, "|", e.Title, "|", e.DenialPrefix, "|", e.Audited, "|", e.FailurePolicy, e.SideEffects, e.Reinvocation, e.Timeout, e.Mode, e.Stage, e.Bindings)
	}
	checks := of(east.Validating, hook.ID{Configuration: "checks", Name: "in-shop"})
	pair := "ValidatingAdmissionPolicy 'checks' with binding 'in-shop'"
	for e, want := range map[*chain.Entry]string{
		checks: fmt.Sprint("policy|", pair, "|", pair+" denied request", "|checks|", chain.Ignore, chain.SideEffectsNone, false, 30*time.Second, chain.Warn, chain.StagePolicy, []string{"warn"}),
		of(east.Mutating, hook.ID{Configuration: "changes", Name: "everywhere"}): fmt.Sprint("policy|policy 'changes' with binding 'everywhere'|policy 'changes' with binding 'everywhere' denied request|changes|",
			chain.Fail, chain.SideEffectsNone, true, 30*time.Second, chain.Enforce, chain.StagePolicy, []string(nil)),
		of(east.Mutating, hook.ID{Configuration: "once", Name: "once"}): fmt.Sprint("policy|policy 'once' with binding 'once'|policy 'once' with binding 'once' denied request|once|",
			chain.Fail, chain.SideEffectsNone, false, 30*time.Second, chain.Enforce, chain.StagePolicy, []string(nil)),
		of(east.Mutating, hook.ID{Configuration: "pull", Name: "AlwaysPullImages"}): fmt.Sprint("plugin||||", chain.Ignore, chain.SideEffectsNone, false, 250*time.Millisecond, chain.Shadow, chain.StagePolicy, []string(nil)),
		of(east.Mutating, hook.ID{Configuration: "tolerations", Name: "DefaultTolerationSeconds"}): fmt.Sprint("plugin||||",
			chain.Fail, chain.SideEffectsNone, true, time.Millisecond, chain.Enforce, chain.StagePolicy, []string(nil)),
	} {
		if got := said(e); got != want {
			t.Errorf("%v is\n%s\nwant\n%s", e.ID, got, want)
		}
	}
	s := checks.Spec
	if diff := cmp.Diff([][]string{{"web"}, nil}, s.Names); diff != "" || len(s.Exclude) != 1 || s.Exclude[0].ResourceNames[0] != "db" || !s.ConditionsAnswer || len(s.MatchConditions) != 1 {
		t.Errorf("it wants %+v %s", s, diff)
	}
	if n := s.Narrower; n == nil || len(n.Rules) != 1 || n.Rules[0].Resources[0] != "pods" || n.Names != nil {
		t.Errorf("its binding wants %+v", n)
	}
	if rules := of(east.Mutating, hook.ID{Configuration: "pull", Name: "AlwaysPullImages"}).Spec.Rules; len(rules) != 1 || rules[0].Resources[0] != "pods/ephemeralcontainers" {
		t.Errorf("the plugin wants %+v", rules)
	}
}

// H7 H26 What kube-apiserver refuses of a policy that mutates, in the fields that both kinds
// have, and of what a policy may have many, at its bounds.
func TestRefusedPolicies(t *testing.T) {
	const head = "apiVersion: admissionregistration.k8s.io/v1\nkind: %sAdmissionPolicy\nmetadata: {name: p}\nspec:\n"
	const constraints = `  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}` + "\n"
	const patch, merge = "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{}]\"}}]\n",
		"  reinvocationPolicy: Never\n  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{}\"}}]\n"
	annotations := func(n int, value string) string {
		text := ""
		for i := range n {
			text += fmt.Sprintf(", {key: k%d, valueExpression: %q}", i, value)
		}
		return "  auditAnnotations: [" + text[2:] + "]\n"
	}
	long := func(n int) string { return "'" + strings.Repeat("a", n-2) + "'" }
	for name, row := range map[string]struct{ kind, spec, want string }{
		"a condition without a name":    {"Mutating", constraints + patch + `  matchConditions: [{expression: "true"}]` + "\n", "spec.matchConditions[0].name: Required value"},
		"a variable without a name":     {"Mutating", constraints + patch + `  variables: [{expression: "true"}]` + "\n", "spec.variables[0].name: Required value"},
		"no constraints":                {"Mutating", merge, "spec.matchConstraints: Required value"},
		"no rules":                      {"Mutating", "  matchConstraints: {}\n" + merge, "spec.matchConstraints.resourceRules: Required value"},
		"one that is patched":           {"Mutating", strings.Replace(constraints, "pods", "widgets", 1) + patch, ""},
		"nothing but annotations":       {"Validating", constraints + annotations(20, "'a'"), ""},
		"too many annotations":          {"Validating", constraints + annotations(21, "'a'"), "spec.auditAnnotations: Too many: must have at most 20 items"},
		"the longest annotation":        {"Validating", constraints + annotations(1, long(5<<10)), ""},
		"a longer one":                  {"Validating", constraints + annotations(1, long(5<<10+1)), "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length"},
		"validations and annotations":   {"Validating", constraints + annotations(1, "'a'") + "  validations: [{expression: 'true'}]\n", ""},
		"neither of the two":            {"Validating", constraints, "spec.validations: Required value"},
		"an annotation and a condition": {"Validating", constraints + annotations(1, "'a'") + `  matchConditions: [{expression: "true"}]` + "\n", "spec.matchConditions[0].name: Required value"},
	} {
		h := home{t, t.TempDir()}
		h.put("cluster.yaml", clusterYAML)
		h.put("policy.yaml", fmt.Sprintf(head, row.kind)+row.spec)
		_, problems, _ := h.compile(compile.Options{})
		got := ""
		if len(problems) > 0 {
			_, got, _ = strings.Cut(problems[0].String(), "/p: ")
		}
		if row.want == "" && got != "" || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
