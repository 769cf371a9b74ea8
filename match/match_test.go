// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestMatchDoesNotAllocate(t *testing.T) {
	const pod = `{"metadata":{"name":"web","labels":{"app":"web","tier":"gold"}}}`
	selective := everything()
	selective.Rules = []admissionregistrationv1.RuleWithOperations{rule("apps", "v1", "deployments"), rule("", "v1", "pods/*"), rule("", "v1", "namespaces")}
	selective.NamespaceSelector = gold
	selective.ObjectSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{"app": "web"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"tin"}},
			{Key: "tier", Operator: metav1.LabelSelectorOpExists},
		},
	}
	selective.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "request", Expression: `request.operation == 'CREATE' && request.namespace != 'kube-system'`},
		{Name: "object", Expression: `has(object.metadata.labels) && !('exempt' in object.metadata.labels)`},
	}
	matchers := []*match.Matcher{compile(t, selective), compile(t, everything())}
	ix := match.NewIndex(matchers)
	for _, resource := range []string{"pods", "namespaces", "services"} {
		t.Run(resource, func(t *testing.T) {
			r := reviewOf(codec.Create, "", "v1", resource, "", "a-namespace-of-more-than-thirty-two-bytes")
			r.Object = objectOf(t, pod)
			r.RequestResource = resourceOf("", "v2", resource)
			s := subjectOf(r)
			s.Namespaces = listed{"a-namespace-of-more-than-thirty-two-bytes": {"tier": "gold"}}
			matchAll(ix, matchers, s, nil) // the source is asked once per Subject
			buf := make([]int, 0, 4)
			if got := testing.AllocsPerRun(100, func() { matchAll(ix, matchers, s, buf) }); got != 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range match.Reason(match.Reasons) {
		if name := r.String(); name == "Unknown" || name == "" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		}
		seen[r.String()] = true
	}
	if got := match.Reason(match.Reasons).String(); got != "Unknown" {
		t.Errorf("got %q", got)
	}
	if got := match.Reason(200).String(); got != "Unknown" {
		t.Errorf("got %q", got)
	}
}
