// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// unread is a source of types that nobody opens.
type unread struct{ chain.KindSource }

// H30 A cluster with an API is asked for the types of kinds where a policy may need them, and
// the groups and versions that its rules name are known beforehand.
func TestKindsOfClusters(t *testing.T) {
	const rules = `{apiGroups: ["", example.com, example.net], apiVersions: [v1, v2], resources: [%s], operations: [CREATE]}`
	for resources, want := range map[string]string{
		"pods":               "",
		"widgets":            "[example.com/v1 example.com/v2 example.net/v1 example.net/v2 v1 v2]",
		"'*'":                "[]",
		"deployments/status": "[]",
	} {
		h := listing(t, false)
		policy := func(name, mutation string) string {
			return fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: %s}, spec: {reinvocationPolicy: Never, matchConstraints: {resourceRules: [%s]}, mutations: [%s]}}\n---\n"+
				"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s}}\n---\n", name, fmt.Sprintf(rules, resources), mutation)
		}
		patches := policy("a", `{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "remove", path: "/a"}]'}}`)
		merges := policy("b", `{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}`)
		for text, want := range map[string]string{patches: "", patches + merges + strings.ReplaceAll(merges, "name: b", "name: c"): want} {
			h.put("policies.yaml", text)
			asked := ""
			_ = h.good(compile.Options{Kinds: func(_ string, _ manifest.KubeAccess, known []schema.GroupVersion) chain.KindSource {
				asked = fmt.Sprint(known)
				return unread{}
			}})
			if asked != want {
				t.Errorf("%s: asked for %q, want %q", resources, asked, want)
			}
			if kinds := h.good(compile.Options{}).Clusters["east"].Kinds(); want == "" && kinds != nil {
				t.Errorf("%s: %v", resources, kinds)
			} else if want != "" {
				if _, err := kinds.Types(schema.GroupVersion{}, time.Time{}); !errors.Is(err, hook.ErrNotAsked) {
					t.Error(err)
				}
			}
		}
	}
}
