// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

func named(r admissionregistrationv1.RuleWithOperations, names ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{ResourceNames: names, RuleWithOperations: r}
}

// H1 What a policy says of names, exclusions and of its binding.
func TestPolicyRules(t *testing.T) {
	const exact = admissionregistrationv1.Exact
	deployments := rule("apps", "v1", "deployments")
	for _, row := range []struct {
		name    string
		spec    func(*match.Spec)
		version string // as sent; the review has v1
		want    match.Reason
	}{
		{"a name that is listed", func(s *match.Spec) { s.Names = [][]string{{"api", "web"}} }, "v1", match.Matched},
		{"a name that is not", func(s *match.Spec) { s.Names = [][]string{{"api"}} }, "v1", match.NoRule},
		{"an empty list is any name", func(s *match.Spec) { s.Names = [][]string{{}} }, "v1", match.Matched},
		{"excluded", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(deployments)) }, "v1", match.ExcludeRule},
		{"excluded by name", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(deployments, "web")) }, "v1", match.ExcludeRule},
		{"another name is excluded", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(deployments, "api")) }, "v1", match.Matched},
		{"excluded as sent", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(rule("apps", "v1beta1", "deployments"))) }, "v1beta1", match.ExcludeRule},
		{"excluded as converted", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(deployments)) }, "v1beta1", match.ExcludeRule},
		{"a version is excluded that nobody has seen", func(s *match.Spec) { s.Exclude = append(s.Exclude, named(rule("apps", "v1beta2", "deployments"))) }, "v1", match.Matched},
		{"Exact excludes what was sent alone", func(s *match.Spec) {
			s.MatchPolicy, s.Rules[0].APIVersions, s.Exclude = exact, []string{"*"}, append(s.Exclude, named(deployments))
		}, "v1beta1", match.Matched},
		{"the binding wants all", func(s *match.Spec) { s.Narrower = &match.Spec{} }, "v1", match.Matched},
		{"the binding wants it", func(s *match.Spec) { s.Narrower.Rules = append(s.Narrower.Rules, deployments) }, "v1", match.Matched},
		{"the binding wants something else", func(s *match.Spec) { s.Narrower.Rules = append(s.Narrower.Rules, rule("", "v1", "pods")) }, "v1", match.BindingRule},
		{"the binding wants another version", func(s *match.Spec) {
			s.Narrower.Rules = append(s.Narrower.Rules, rule("apps", "v2", "deployments"))
		}, "v1", match.Matched},
		{"the binding wants exactly another version", func(s *match.Spec) {
			s.Narrower.MatchPolicy, s.Narrower.Rules = exact, append(s.Narrower.Rules, rule("apps", "v2", "deployments"))
		}, "v1", match.BindingRule},
		{"the binding wants another name", func(s *match.Spec) {
			s.Narrower.Rules, s.Narrower.Names = append(s.Narrower.Rules, deployments), [][]string{{"api"}}
		}, "v1", match.BindingRule},
		{"the binding excludes it", func(s *match.Spec) { s.Narrower.Exclude = append(s.Narrower.Exclude, named(deployments)) }, "v1", match.ExcludeRule},
		{"the binding's objectSelector", func(s *match.Spec) { s.Narrower.ObjectSelector = gold }, "v1", match.ObjectSelector},
		{"the binding's namespaceSelector", func(s *match.Spec) { s.Narrower.NamespaceSelector = gold }, "v1", match.NamespaceSelector},
		{"one selector selects the new object, the other the old one", func(s *match.Spec) {
			s.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			s.Narrower.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "old"}}
		}, "v1", match.Matched},
		{"a condition that fails is the policy's to answer", func(s *match.Spec) {
			s.ConditionsAnswer, s.MatchConditions = true, []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "object.a.b == 1"}}
		}, "v1", match.Matched},
		{"one that is false skips it, whatever fails", func(s *match.Spec) {
			s.ConditionsAnswer, s.MatchConditions = true, []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "object.a.b == 1"}, {Name: "d", Expression: "false"}}
		}, "v1", match.MatchCondition},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := everything()
			spec.Rules = []admissionregistrationv1.RuleWithOperations{rule("apps", "v1", "deployments")}
			spec.FailurePolicy, spec.Narrower = admissionregistrationv1.Fail, &match.Spec{}
			row.spec(&spec)
			r := reviewOf(codec.Update, "apps", "v1", "deployments", "", "shop")
			r.Name = []byte("web")
			r.RequestResource = resourceOf("apps", row.version, "deployments")
			r.Object = objectOf(t, `{"metadata":{"name":"web","labels":{"app":"web"}}}`)
			r.OldObject = objectOf(t, `{"metadata":{"name":"web","labels":{"app":"old"}}}`)
			s := subjectOf(r)
			s.Namespaces = listed{"shop": {"tier": "tin"}}
			if got := compile(t, spec).Match(s); got.Reason != row.want {
				t.Errorf("%v %v, want %v", got.Reason, got.Err, row.want)
			}
		})
	}
}

// The labels that selectors name are those of the policy and of its binding.
func TestLabelsOfPolicies(t *testing.T) {
	spec := everything()
	spec.NamespaceSelector = gold
	spec.Narrower = &match.Spec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod", "tier": "gold"}}}
	m := compile(t, spec)
	for _, got := range [][]string{m.SelectedLabels(), m.NeededLabels()} {
		if len(got) != 2 || got[0] != "env" || got[1] != "tier" {
			t.Errorf("got %q", got)
		}
	}
}

// Policies that name objects conflict as others do: of a request for an object that both
// name, each wants another version.
func TestNamesAndConflicts(t *testing.T) {
	a, b := everything(), everything()
	a.Rules, a.Names = []admissionregistrationv1.RuleWithOperations{rule("apps", "v1", "deployments")}, [][]string{{"web"}}
	b.Rules, b.Names = []admissionregistrationv1.RuleWithOperations{rule("apps", "v2", "deployments")}, [][]string{{"web"}}
	if !compile(t, a).ConflictsWith(compile(t, b)) {
		t.Error("they do not conflict")
	}
}
