// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// converted is what the user sent as apps/v1beta1, and the API server made
// apps/v1 of: no webhook that lists v1beta1 alone may judge that.
func converted(t testing.TB) *codec.Review {
	r := reviewOf(codec.Update, "apps", "v1", "deployments", "scale", "shop")
	r.RequestResource = resourceOf("apps", "v1beta1", "deployments")
	r.Object = objectOf(t, `{"metadata":{"labels":{"a":"1"}}}`)
	return r
}

func TestMatchPolicy(t *testing.T) {
	const exact, equivalent = admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
	other := func(r admissionregistrationv1.RuleWithOperations) match.Spec {
		return match.Spec{MatchPolicy: equivalent, Rules: []admissionregistrationv1.RuleWithOperations{r}}
	}
	tests := []struct {
		name   string
		policy admissionregistrationv1.MatchPolicyType
		rule   admissionregistrationv1.RuleWithOperations
		want   match.Reason
	}{
		{"Exact, as sent", exact, rule("apps", "v1beta1", "deployments/scale"), match.NotConvertible},
		{"Exact, as sent and as matched", exact, rule("apps", "*", "deployments/scale"), match.Matched},
		{"Exact, as matched", exact, rule("apps", "v1", "deployments/scale"), match.NoRule},
		{"Exact, another version", exact, rule("apps", "v2", "deployments/scale"), match.NoRule},
		{"Equivalent, as sent", equivalent, rule("apps", "v1beta1", "deployments/scale"), match.NotConvertible},
		{"Equivalent, as matched", equivalent, rule("apps", "v1", "deployments/scale"), match.Matched},
		{"Equivalent, any version", equivalent, rule("apps", "*", "*/*"), match.Matched},
		{"Equivalent, another version", equivalent, rule("apps", "v2", "deployments/scale"), match.NotConvertible},
		{"Equivalent, another version by wildcards", equivalent, rule("*", "v2", "*/*"), match.NotConvertible},
		{"Equivalent, another version and subresource", equivalent, rule("apps", "v2", "deployments"), match.NoRule},
		{"Equivalent, another version and operation", equivalent, rule("apps", "v2", "*/*", "CREATE"), match.NoRule},
		{"Equivalent, another version and scope", equivalent,
			scoped(rule("apps", "v2", "*/*"), admissionregistrationv1.ClusterScope), match.NoRule},
	}
	for _, tt := range tests {
		t.Run("B20a "+tt.name, func(t *testing.T) {
			spec := other(tt.rule)
			spec.MatchPolicy = tt.policy
			d := expect(t, compile(t, spec), subjectOf(converted(t)), tt.want)
			if (d.Rule < 0) != (tt.want == match.NoRule) {
				t.Errorf("got rule %d", d.Rule)
			}
			if (d.Err != nil) != (tt.want == match.NotConvertible) {
				t.Errorf("got error %v", d.Err)
			}
		})
	}
	t.Run("Equivalent, another version in the group that was sent", func(t *testing.T) {
		r := converted(t)
		r.RequestResource = resourceOf("extensions", "v1beta1", "deployments")
		r.RequestSubResource = r.SubResource
		expect(t, compile(t, other(rule("extensions", "v1", "*/*"))), subjectOf(r), match.NotConvertible)
	})
	t.Run("Equivalent, in another group", func(t *testing.T) {
		expect(t, compile(t, other(rule("extensions", "v1beta1", "deployments/*"))), subjectOf(converted(t)), match.NotConvertible)
	})
	t.Run("Exact, in another group", func(t *testing.T) {
		spec := other(rule("extensions", "v1beta1", "deployments/*"))
		spec.MatchPolicy = exact
		expect(t, compile(t, spec), subjectOf(converted(t)), match.NoRule)
	})
	t.Run("an object that is not selected need not be converted", func(t *testing.T) {
		spec := other(rule("apps", "v2", "*/*"))
		spec.ObjectSelector = labelSelector(metav1.LabelSelectorOpDoesNotExist, "a")
		expect(t, compile(t, spec), subjectOf(converted(t)), match.ObjectSelector)
	})
	t.Run("neither in a namespace that is not selected", func(t *testing.T) {
		spec := other(rule("apps", "v2", "*/*"))
		spec.NamespaceSelector = labelSelector(metav1.LabelSelectorOpNotIn, "kubernetes.io/metadata.name", "shop")
		expect(t, compile(t, spec), subjectOf(converted(t)), match.NamespaceSelector)
	})
	t.Run("conditions are not asked of what cannot be converted", func(t *testing.T) {
		spec := other(rule("apps", "v2", "*/*"))
		spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "false"}}
		expect(t, compile(t, spec), subjectOf(converted(t)), match.NotConvertible)
	})
}
