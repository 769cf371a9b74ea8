// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A WebhookConfiguration is what an unmodified configuration of its phase would be, with
// kube-apiserver's defaults.
func TestE5WebhookConfiguration(t *testing.T) {
	const webhooks = `webhooks:
- name: a.e5.example.com
  clientConfig: {service: {name: svc, namespace: ns, path: /judge}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
- name: b.e5.example.com
  clientConfig: {url: "https://b.example.com/judge"}
  failurePolicy: Ignore
  matchPolicy: Exact
  timeoutSeconds: 3
  objectSelector: {matchLabels: {a: b}}
  matchConditions: [{name: always, expression: "true"}]
  sideEffects: NoneOnDryRun
  admissionReviewVersions: [v1beta1, v1]
`
	for _, phase := range []string{"Validating", "Mutating"} {
		h := newHome(t)
		h.put("upstream.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: "+phase+"WebhookConfiguration\nmetadata: {name: upstream}\n"+webhooks)
		h.put("own.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookConfiguration\nmetadata: {name: own}\nspec:\n  phase: "+phase+"\n  "+
			strings.ReplaceAll(strings.TrimSpace(webhooks), "\n", "\n  ")+"\n")
		in := h.read()
		if len(in.Problems) > 0 || len(in.Objects.Configurations) != 2 {
			t.Fatalf("%s: %v", phase, in.Problems)
		}
		own, upstream := in.Objects.Configurations[0], in.Objects.Configurations[1]
		if own.Phase != upstream.Phase || own.Beta != upstream.Beta {
			t.Errorf("%s: phases %v and %v", phase, own.Phase, upstream.Phase)
		}
		if diff := cmp.Diff(upstream.Webhooks, own.Webhooks); diff != "" {
			t.Errorf("%s: upstream (-) and own (+):\n%s", phase, diff)
		}
	}
}
