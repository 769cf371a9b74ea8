// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// authorizers are those of two clusters: east's hangs once it is told to, and allows what
// is not forbidden.
type authorizers struct {
	mu    sync.Mutex
	hangs bool
	fails error
	asked []string
}

func (a *authorizers) of(cluster string, _ manifest.KubeAccess) chain.AuthorizerSource {
	return authorizer{cluster: cluster, authorizers: a}
}

func (a *authorizers) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

type authorizer struct {
	chain.Resource
	*authorizers
	cluster string
}

func (a authorizer) Identity() string   { return "authorizer of " + a.cluster }
func (authorizer) Open(context.Context) {}

func (a authorizer) Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	a.mu.Lock()
	hangs, fails := a.hangs && a.cluster == "east", a.fails
	verb := access.ResourceAttributes.Verb
	a.asked = append(a.asked, fmt.Sprintf("%s: %s %s", a.cluster, access.User, verb))
	a.mu.Unlock()
	if hangs {
		<-time.After(time.Until(deadline) / 2)
		fails = errors.New("the cluster's API did not answer in time")
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: verb != "forbidden"}, fails
}

const askingClusters = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: kubeconfig}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: west}
spec: {authentication: {certificate: {commonNames: [west]}}, kubeconfigFile: kubeconfig}
`

// askingWebhook wants what its conditions say.
const askingWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: asking}
webhooks:
- name: asking.example.com
  clientConfig: {url: "https://webhook.example.com/asking"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]
  matchConditions:
  - {name: object, expression: "has(object.metadata)"}
  - {name: authorizer, expression: %q}
  admissionReviewVersions: [v1]
  sideEffects: None
`

const askingPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: asking}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  variables: [{name: may, expression: %[1]q}]
  validations: [{expression: "has(object.metadata) && variables.may", message: "may not"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: asking}
spec: {policyName: asking, validationActions: [Deny]}
`

const mayBreak = `authorizer.requestResource.check('break').allowed()`

// askingWorld is two clusters with an API, and what is configured for both.
func askingWorld(t *testing.T, limits overload.Limits, manifests ...string) (*dispatcher.Dispatcher, *registry.Snapshot, *authorizers) {
	t.Helper()
	asked := &authorizers{}
	d, s := worldWithAPIs(t, limits, compile.Options{Authorizer: asked.of}, manifests...)
	return d, s, asked
}

// worldWithAPIs is two clusters whose APIs are what the options say.
func worldWithAPIs(t *testing.T, limits overload.Limits, options compile.Options, manifests ...string) (*dispatcher.Dispatcher, *registry.Snapshot) {
	t.Helper()
	dir := t.TempDir()
	const kubeconfig = `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],` +
		`"clusters":[{"name":"a","cluster":{"server":"https://api.example.com"}}],"users":[{"name":"a","user":{"token":"abc"}}]}`
	for name, text := range map[string]string{"all.yaml": strings.Join(append(manifests, askingClusters), "\n---\n"), "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options.Client = calling(func(call transport.Call, to hook.Receiver) { answer(call, to, codec.Response{Allowed: true}, nil) })
	r := registry.New(registry.Settings{
		Sources: manifest.Directories(dir), Compile: options, Logger: slog.New(slog.DiscardHandler),
	})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := dispatcher.New(dispatcher.Config{Limits: limits, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d, r.Snapshot()
}

// J1 A matchCondition decides by what the cluster's authorizer says, which is asked once.
func TestConditionThatAsks(t *testing.T) {
	for _, row := range []struct {
		name, expression string
		fails            error
		called           bool
	}{
		{"allowed", mayBreak, nil, true},
		{"not allowed", `authorizer.requestResource.check('forbidden').allowed()`, nil, false},
		{"J4 an error is no allow", mayBreak, errors.New("no"), false},
		{"J4 an error that is asked for", `authorizer.requestResource.check('break').errored()`, errors.New("no"), true},
	} {
		for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
			t.Run(row.name+" "+phase.String(), func(t *testing.T) {
				kind := map[chain.Phase]string{chain.Validating: "Validating", chain.Mutating: "Mutating"}[phase]
				d, s, asked := askingWorld(t, overload.Limits{}, fmt.Sprintf(askingWebhook, kind, row.expression))
				asked.fails = row.fails
				v := admitPhase(t, phase, d, s, "east", selectedPod, time.Second)
				if !v.Response.Allowed || (len(v.Outcomes) == 1) != row.called || asked.times() != 1 {
					t.Errorf("%+v, asked %q", v, asked.asked)
				}
			})
		}
	}
}

// J1 So does a policy, and what is known is known to all.
func TestPolicyThatAsks(t *testing.T) {
	d, s, asked := askingWorld(t, overload.Limits{}, fmt.Sprintf(askingPolicy, mayBreak), fmt.Sprintf(askingWebhook, "Validating", mayBreak))
	if v := admitPhase(t, chain.Validating, d, s, "west", selectedPod, time.Second); !v.Response.Allowed || len(v.Outcomes) != 2 || asked.times() != 1 {
		t.Errorf("%+v, asked %q", v, asked.asked)
	}
	asked.fails = errors.New("no")
	if v := admitPhase(t, chain.Validating, d, s, "west", selectedPod, time.Second); v.Response.Allowed || !strings.HasSuffix(v.Response.Message, "may not") {
		t.Errorf("%+v", v.Response)
	}
}

const askingMutations = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: asking}
spec:
  failurePolicy: %s
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  variables: [{name: may, expression: "authorizer.requestResource.check('break').allowed()"}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'may': string(variables.may)}}]"}
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'second': string(authorizer.requestResource.check('forbidden').allowed()) + string(variables.may)}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: asking}
spec: {policyName: asking}
`

// J1 And a policy that mutates, also over what it has changed: each question is asked once,
// and nothing that was evaluated without the answer counts, whatever the failurePolicy.
func TestMutationsThatAsk(t *testing.T) {
	for _, failurePolicy := range []string{"Fail", "Ignore"} {
		for _, row := range []struct {
			fails error
			want  string
		}{
			{nil, `[{"op":"add","path":"/metadata/annotations","value":{"may":"true"}},{"op":"add","path":"/metadata/annotations/second","value":"falsetrue"}]`},
			{errors.New("no"), `[{"op":"add","path":"/metadata/annotations","value":{"may":"false"}},{"op":"add","path":"/metadata/annotations/second","value":"falsefalse"}]`},
		} {
			d, s, asked := askingWorld(t, overload.Limits{}, fmt.Sprintf(askingMutations, failurePolicy))
			asked.fails = row.fails
			v := admitPhase(t, chain.Mutating, d, s, "east", selectedPod, time.Second)
			if !v.Response.Allowed || string(v.Response.Patch) != row.want || asked.times() != 2 {
				t.Errorf("%s, %v: %v %s %s, asked %q", failurePolicy, row.fails, v.Response.Allowed, v.Response.Message, v.Response.Patch, asked.asked)
			}
		}
	}
}

// J5 Who waits for an authorizer that hangs holds no turn to work on large objects, which
// clusters share, and has an answer in time; other clusters notice nothing.
func TestAuthorizerThatHangs(t *testing.T) {
	for name, manifest := range map[string]string{
		"a webhook": fmt.Sprintf(askingWebhook, "Validating", mayBreak),
		"a policy":  fmt.Sprintf(askingPolicy, mayBreak),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s, asked := askingWorld(t, overload.Limits{Admissions: 64}, manifest)
				asked.hangs = true
				large, start := zeros(1<<20), time.Now()
				var waiting sync.WaitGroup
				for range 4 {
					waiting.Go(func() {
						admitPhase(t, chain.Validating, d, s, "east", large, 10*time.Second)
						if took := time.Since(start); took < 4*time.Second || took > 9*time.Second {
							t.Errorf("east is answered after %v", took)
						}
					})
				}
				synctest.Wait()
				if asked.times() != 4 || d.InFlight()["east"] != 4 {
					t.Errorf("asked %d times, in flight %v", asked.times(), d.InFlight())
				}
				for range 4 {
					if v := admitPhase(t, chain.Validating, d, s, "west", large, 10*time.Second); !v.Response.Allowed || len(v.Outcomes) != 1 {
						t.Errorf("west: %+v", v)
					}
				}
				if took := time.Since(start); took != 0 {
					t.Errorf("west waits for %v", took)
				}
				waiting.Wait()
			})
		})
	}
}

// J5 Those who wait take a part of the slots, which clusters share. Who comes then is shed,
// and that is no answer of the authorizer: the failure policy decides.
func TestWaitingForAuthorizersLeavesSlots(t *testing.T) {
	for name, manifest := range map[string]string{
		"a webhook": fmt.Sprintf(askingWebhook, "Validating", `!authorizer.requestResource.check('break').allowed()`),
		"a policy":  fmt.Sprintf(askingPolicy, mayBreak),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s, asked := askingWorld(t, overload.Limits{Admissions: 16, PerCluster: 16}, manifest)
				asked.hangs = true
				var waiting sync.WaitGroup
				for range 2 { // of the four lookups that there may be
					waiting.Go(func() { admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second) })
					synctest.Wait()
				}
				for range 10 {
					if v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second); v.Response.Allowed || v.Response.Code != 429 || v.Outcomes[0].Cause != hook.Shed {
						t.Errorf("east: %+v", v)
					}
				}
				if asked.times() != 2 || d.InFlight()["east"] != 2 {
					t.Errorf("asked %d times, in flight %v", asked.times(), d.InFlight())
				}
				if v := admitPhase(t, chain.Validating, d, s, "west", selectedPod, 10*time.Second); !v.Response.Allowed {
					t.Errorf("west: %+v", v)
				}
				waiting.Wait()
			})
		})
	}
}

// J6 Nobody waits for what a Shadow webhook or policy asks, and no slot is taken.
func TestShadowThatAsks(t *testing.T) {
	for name, manifest := range map[string]string{
		"a webhook": fmt.Sprintf(askingWebhook, "Validating", mayBreak),
		"a policy":  fmt.Sprintf(askingPolicy, mayBreak),
	} {
		t.Run("J6 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s, asked := askingWorld(t, overload.Limits{Admissions: 4}, manifest)
				s.Clusters["east"].Validating.Webhooks[0].Mode = chain.Shadow
				asked.hangs = true
				start := time.Now()
				for range 3 {
					if v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second); !v.Response.Allowed || time.Since(start) != 0 || len(d.InFlight()) != 0 {
						t.Errorf("%+v after %v", v, time.Since(start))
					}
				}
				synctest.Wait()
				if asked.times() != 3 {
					t.Errorf("asked %d times", asked.times())
				}
				d.Wait()
			})
		})
	}
}

// J6 Explain asks nobody, and says what it depends on.
func TestExplainAsksNobody(t *testing.T) {
	_, s, asked := askingWorld(t, overload.Limits{}, fmt.Sprintf(askingPolicy, mayBreak), fmt.Sprintf(askingWebhook, "Validating", mayBreak))
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(selectedPod, nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	const depends = `it depends on the cluster's authorizer, which was not asked: whether "ann" may break pods "web" in namespace "shop"`
	e := dispatcher.Explain(review, s.Clusters["east"], chain.Validating)
	if p := e.Webhooks[0]; !p.Called || p.Answer != depends {
		t.Errorf("the policy: %+v", p)
	}
	if w := e.Webhooks[1]; w.Called || w.Reason != "AuthorizerNotAsked" || !strings.HasSuffix(w.Detail, depends) {
		t.Errorf("the webhook: %+v", w)
	}
	if asked.times() != 0 {
		t.Errorf("asked %q", asked.asked)
	}
}
