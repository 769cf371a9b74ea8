// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// drawRule draws a bypass rule with fields that fit the reviews of drawReview now
// and then.
func drawRule(t *rapid.T) match.RequestRule {
	some := func(name string, values ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, 2, rapid.ID).Draw(t, name)
	}
	return match.RequestRule{
		Name:            "rule",
		Namespaces:      some("namespaces", "shop", "lab"),
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
		Resource:    codec.GroupVersionResource{Group: one("group", "", "apps"), Version: []byte("v1"), Resource: one("resource", "pods", "deployments")},
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
// no more, or a policy would be off; no less, or a cluster could not heal.
func TestExclusionsAreTheBypass(t *testing.T) {
	cel := celenv.NewCompiler()
	rapid.Check(t, func(t *rapid.T) {
		rule, review := drawRule(t), drawReview(t)
		if errs := match.ValidateRequestRules([]match.RequestRule{rule}, nil, false); len(errs) > 0 {
			t.Skip("not a rule")
		}
		selector, conditions := exclusions([]match.RequestRule{rule})
		all := admissionregistrationv1.AllScopes
		matcher, err := match.Compile(match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &all},
			}},
			MatchPolicy:       admissionregistrationv1.Equivalent,
			FailurePolicy:     admissionregistrationv1.Fail,
			NamespaceSelector: selector,
			ObjectSelector:    &metav1.LabelSelector{},
			MatchConditions:   conditions,
		}, cel)
		if err != nil {
			t.Fatal(err)
		}
		compiled := match.CompileRequestRules([]match.RequestRule{rule})
		_, bypassed := compiled.Match(review)
		called := matcher.Match(&match.Subject{Review: review, Object: &review.Object})
		if called.Err != nil {
			t.Fatalf("%v: %v", conditions, called.Err)
		}
		if bypassed == (called.Reason == match.Matched) {
			t.Fatalf("bypassed %v, but %v by %v %v", bypassed, called.Reason, selector, conditions)
		}
	})
}
