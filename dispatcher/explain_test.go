// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
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

// Explain gives the review back. Who is explained has a path of its own where webhooks
// conflict.
func TestExplainPaths(t *testing.T) {
	const conflicting = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: c}
webhooks:
- {name: a.e.com, clientConfig: {url: "https://webhook.example.com/1"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
- {name: b.e.com, clientConfig: {url: "https://webhook.example.com/2"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{apiGroups: [""], apiVersions: [v2], operations: ["*"], resources: [pods]}]}
`
	_, s := newWorld(t, labeller{}, overload.Limits{}, fmt.Sprintf(largeCluster, "east"), conflicting)
	review, freed := codec.AcquireReview(), false
	body := codec.NewBody(zeros(10), func([]byte) { freed = true })
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	body.Release()
	list := s.Clusters["east"].Validating
	e := dispatcher.Explain(review, s.Clusters["east"], chain.Validating)
	if len(e.Webhooks) != 2 || e.Paths != 2 {
		t.Fatalf("%+v", e)
	}
	for i, w := range e.Webhooks {
		segment := list.PathOf(i).Segment
		if want := "/v1/clusters/east/validate/" + segment; segment == "" || w.Path != want {
			t.Errorf("%s: the path is %s, want %s", w.Webhook, w.Path, want)
		}
	}
	if e.Webhooks[0].Path == e.Webhooks[1].Path {
		t.Errorf("both have the path %s", e.Webhooks[0].Path)
	}
	if freed {
		t.Error("the review is gone before its end")
	}
	if codec.ReleaseReview(review); !freed {
		t.Error("the review is still held")
	}
}

// explained is a Hook that says what it would do.
type explained struct {
	*hook.Func
	payload string
	err     error
}

func (e explained) Explain(*hook.View) (hook.Explanation, error) {
	return hook.Explanation{Payload: e.payload}, e.err
}

// What a Hook says of itself is told: how it would be called, or why it cannot be. Those
// of one stage that are called have one number, mutating ones one each.
func TestExplainedByTheHook(t *testing.T) {
	for phase, want := range map[chain.Phase][]string{
		chain.Validating: {
			`says called=true order=1 reason="" payload="JSON"`,
			`broken called=false order=0 reason="BreakerOpen" payload=""`,
			`odd called=false order=0 reason="" payload=""`,
			`silent called=true order=1 reason="" payload=""`,
			`dry called=false order=0 reason="DryRun" payload=""`,
			`last called=true order=2 reason="" payload="JSON"`,
		},
		chain.Mutating: {
			`says called=true order=1 reason="" payload="JSON"`,
			`broken called=false order=0 reason="BreakerOpen" payload=""`,
			`odd called=false order=0 reason="" payload=""`,
			`silent called=true order=2 reason="" payload=""`,
			`dry called=false order=0 reason="DryRun" payload=""`,
			`last called=true order=3 reason="" payload="JSON"`,
		},
	} {
		play(t, func(l *locals) {
			add := func(name, payload string, err error) *chain.Entry {
				return l.add(name, allow, func(e *chain.Entry) { e.Hook = explained{e.Hook.(*hook.Func), payload, err} })
			}
			add("says", "JSON", nil)
			add("broken", "", &hook.CallError{Cause: hook.BreakerOpen, Err: errors.New("away")})
			add("odd", "", errors.New("odd"))
			l.add("silent", allow, func(e *chain.Entry) { e.SideEffects = chain.SideEffectsNoneOnDryRun })
			l.add("dry", allow, func(e *chain.Entry) { e.SideEffects = chain.SideEffectsSome })
			add("last", "JSON", nil).Stage = chain.StageTransactional
			review := codec.AcquireReview()
			defer codec.ReleaseReview(review)
			body := codec.NewBody([]byte(strings.Replace(string(zeros(10)), `"dryRun":false`, `"dryRun":true`, 1)), nil)
			defer body.Release()
			if err := review.Decode(body); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range dispatcher.Explain(review, l.cluster(), phase).Webhooks {
				got = append(got, fmt.Sprintf("%s called=%v order=%d reason=%q payload=%q", w.Webhook, w.Called, w.Order, w.Reason, w.Payload))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", phase, diff)
			}
		})
	}
}
