// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// drawRule draws a bypass rule with fields that fit the reviews of drawReview now
// and then.
func drawRule(t *rapid.T) exempt.Rule {
	some := func(name string, values ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, 2, rapid.ID).Draw(t, name)
	}
	return exempt.Rule{
		Name:            "rule",
		Namespaces:      some("namespaces", "shop", "lab", "*"),
		Users:           some("users", "ann", `b"ob\`, "jürgen"),
		Groups:          some("groups", "dev", "ops"),
		ServiceAccounts: some("serviceAccounts", "shop/bot", "shop/*"),
		Resources:       some("resources", "/pods", "/pods/*", "*/*/scale", "apps/deployments", "apps/*", "*/*"),
		Operations:      some("operations", "CREATE", "DELETE"),
	}
}

func drawReview(t *rapid.T) *codec.Review {
	one := func(name string, values ...string) []byte {
		return []byte(rapid.SampledFrom(values).Draw(t, name))
	}
	r := &codec.Review{
		Operation:   rapid.SampledFrom([]codec.Operation{codec.Create, codec.Update, codec.Delete}).Draw(t, "operation"),
		Namespace:   one("namespace", "", "shop", "lab", "default"),
		SubResource: one("subresource", "", "scale", "status"),
		Resource:    codec.GroupVersionResource{Group: one("group", "", "apps"), Version: []byte("v1"), Resource: one("resource", "pods", "deployments", "namespaces")},
	}
	r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	r.User.Username = one("user", "", "ann", `b"ob\`, "jürgen", "system:serviceaccount:shop:bot", "system:serviceaccount:shop:other", "system:serviceaccount:lab:bot",
		"system:serviceaccount:shop:", "system:serviceaccount:shop:a:b", "system:serviceaccount:shop")
	for range rapid.IntRange(0, 2).Draw(t, "groups") {
		r.User.Groups = append(r.User.Groups, one("group of the user", "dev", "ops", "qa"))
	}
	return r
}

// What the API server is told to leave out is what the dispatcher would bypass:
// no more, or a policy would be off; no less, or a cluster could not heal. That
// holds for any number of rules, which never need more conditions than the API
// server accepts, and for Namespaces whose labels a user has forged.
func TestExclusionsAreTheBypass(t *testing.T) {
	cel, most := celenv.NewCompiler(), 0
	rapid.Check(t, func(t *rapid.T) {
		rules := make([]exempt.Rule, rapid.SampledFrom([]int{0, 1, 2, 47, 48, 49, 100, 300}).Draw(t, "rules"))
		for i := range rules {
			if i < 5 {
				rules[i] = drawRule(t)
			} else {
				rules[i] = exempt.Rule{Users: []string{fmt.Sprintf("nobody-%d", i)}, Groups: []string{"dev"}}
			}
			rules[i].Name = fmt.Sprintf("rule %d", i)
		}
		if errs := exempt.Validate(rules, nil, false); len(errs) > 0 {
			t.Skip("not rules")
		}
		conditions := exclusions(rules)
		most = max(most, len(conditions))
		matcher, err := match.Compile(match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{anything()}, MatchPolicy: admissionregistrationv1.Equivalent,
			FailurePolicy: admissionregistrationv1.Fail, MatchConditions: conditions,
		}, cel)
		if err != nil {
			t.Fatal(err)
		}
		compiled := exempt.Compile(rules)
		for range 5 {
			review := drawReview(t)
			_, bypassed := compiled.Match(review)
			called := matcher.Match(&match.Subject{View: hook.NewView(hook.Source{Review: review})})
			if called.Err != nil {
				t.Fatalf("%v: %v", conditions, called.Err)
			}
			if bypassed == (called.Reason == match.Matched) {
				t.Fatalf("bypassed %v, but %v by %v", bypassed, called.Reason, conditions)
			}
		}
	})
	if most > mostExclusions+1 {
		t.Errorf("%d conditions", most)
	}
}

// Namespaces that are bypassed whatever else a request says are one condition, which
// names each once. "*" is a name as any other, and stands for none of them.
func TestBypassedNamespaces(t *testing.T) {
	got := exclusions([]exempt.Rule{{Name: "a", Namespaces: []string{"shop", "*"}}, {Name: "b", Namespaces: []string{"lab", "shop"}}})
	const want = `!(has(request.namespace) && request.namespace in ["*", "lab", "shop"])`
	if len(got) != 1 || got[0].Expression != want {
		t.Errorf("%+v, want %s", got, want)
	}
}

// A user who creates a Namespace by generateName writes the label of its name:
// the API server sets it later. That must not be a way around a policy.
func TestForgedNamespaceIsJudged(t *testing.T) {
	rules := exempt.Compile(exempt.DefaultBypass(""))
	mutating, _ := configurations()
	hook := diceOf(1).webhook(0)
	hook.Rules, hook.FailurePolicy = []admissionregistrationv1.RuleWithOperations{anything()}, new(admissionregistrationv1.Fail)
	hook.NamespaceSelector, hook.ObjectSelector = nil, nil
	mutating.Webhooks = append(mutating.Webhooks, hook)
	c := compiled(t, mutating)
	c.Bypass = rules
	made, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{api: newAPIServer(t, nil, storedNamespaces()), cluster: c, made: made}
	forged := map[string]string{metadataName: "kube-system"}
	q := &sent{operation: codec.Create, resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, labels: forged}
	if got := comparisonOf(w, chain.Mutating, q); len(got.called) != 1 || got.bypassed {
		t.Errorf("%d calls, bypassed %v", len(got.called), got.bypassed)
	}
	q.namespace, q.name = "kube-system", "kube-system"
	if got := comparisonOf(w, chain.Mutating, q); len(got.called) != 0 || !got.bypassed {
		t.Errorf("the Namespace kube-system itself: %d calls, bypassed %v", len(got.called), got.bypassed)
	}
}
