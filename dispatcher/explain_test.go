// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
)

// What Explain says of each webhook, called or not, is what Dispatch would do.
func TestExplain(t *testing.T) {
	const cluster = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  authentication: {anonymous: true}
  bypass: {rules: [{name: robots, groups: [robots]}]}
  failOpen: {rules: [{name: leases, namespaces: [shop]}]}
`
	const configurations = `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: %[1]sWebhookConfiguration
metadata: {name: c}
webhooks:
- {name: called.e.com, clientConfig: {url: "https://webhook.example.com/1"}, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 7,
   failurePolicy: Fail, rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}, {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
- {name: other.e.com, clientConfig: {url: "https://webhook.example.com/2"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]}
- {name: condition.e.com, clientConfig: {url: "https://webhook.example.com/3"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}], matchConditions: [{name: never, expression: "false"}]}
- {name: broken.e.com, clientConfig: {url: "https://webhook.example.com/4"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}], matchConditions: [{name: broken, expression: "object.missing == 1"}]}
- {name: some.e.com, clientConfig: {url: "https://webhook.example.com/5"}, sideEffects: Some, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
- {name: last.e.com, clientConfig: {url: "https://webhook.example.com/6"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
`
	const binding = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: last}
spec: {webhooks: ["c/last.e.com"], mode: Warn, timeout: 250ms%s}
`
	explained := func(phase chain.Phase, kind, more, group string) (dispatcher.Explanation, []string) {
		t.Helper()
		_, s := newWorld(t, labeller{}, overload.Limits{}, cluster, fmt.Sprintf(configurations, kind), fmt.Sprintf(binding, more))
		text := fmt.Sprintf(podReview, `{"metadata":{}}`)
		text = strings.Replace(text, `"dryRun":false`, `"dryRun":true`, 1)
		text = strings.Replace(text, `"groups":["dev"]`, `"groups":["`+group+`"]`, 1)
		review := codec.AcquireReview()
		t.Cleanup(func() { codec.ReleaseReview(review) })
		body := codec.NewBody([]byte(text), nil)
		t.Cleanup(body.Release)
		if err := review.Decode(body); err != nil {
			t.Fatal(err)
		}
		e := dispatcher.Explain(review, s.Clusters["east"], phase)
		var lines []string
		for _, w := range e.Webhooks {
			lines = append(lines, fmt.Sprintf("%s/%s %s called=%v order=%d reason=%q detail=%q rule=%q payload=%q %s %s %s %s",
				w.Configuration, w.Webhook, w.Path, w.Called, w.Order, w.Reason, w.Detail, w.Rule, w.Payload, w.FailurePolicy, w.Mode, w.Timeout, w.URL))
		}
		e.Webhooks = nil
		return e, lines
	}
	const own, all = `CREATE of pods in ""/v1`, `* of pods in ""/v1`
	want := func(phase string, orders ...int) []string {
		at := "/v1/clusters/east/" + phase
		return []string{
			fmt.Sprintf(`c/called.e.com %s called=true order=%d reason="" detail="" rule=%q payload="JSON v1 at first, as received" Fail Enforce 7s https://webhook.example.com/1`, at, orders[0], own),
			fmt.Sprintf(`c/other.e.com %s called=false order=0 reason="NoRule" detail="" rule="" payload="" Ignore Enforce 30s https://webhook.example.com/2`, at),
			fmt.Sprintf(`c/condition.e.com %s called=false order=0 reason="MatchCondition" detail="never" rule=%q payload="" Ignore Enforce 30s https://webhook.example.com/3`, at, all),
			fmt.Sprintf(`c/broken.e.com %s called=false order=0 reason="ConditionError" detail="matchCondition \"broken\": no such key: missing" rule=%q payload="" Ignore Enforce 30s https://webhook.example.com/4`, at, all),
			fmt.Sprintf(`c/some.e.com %s called=false order=0 reason="DryRun" detail="" rule=%q payload="" Ignore Enforce 30s https://webhook.example.com/5`, at, all),
			fmt.Sprintf(`c/last.e.com %s called=true order=%d reason="" detail="" rule=%q payload="JSON v1 at first, as received" Ignore Warn 250ms https://webhook.example.com/6`, at, orders[1], all),
		}
	}
	e, lines := explained(chain.Validating, "Validating", ", stage: Transactional", "robots")
	if diff := cmp.Diff(dispatcher.Explanation{Cluster: "east", Phase: "validate", Paths: 1, Bypass: "robots", FailOpen: "leases"}, e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want("validate", 1, 2), lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	e, lines = explained(chain.Mutating, "Mutating", "", "dev")
	if diff := cmp.Diff(dispatcher.Explanation{Cluster: "east", Phase: "mutate", Paths: 1, FailOpen: "leases"}, e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want("mutate", 1, 2), lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
