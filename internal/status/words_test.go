// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/match"
)

func rule(operations, groups, versions, resources []string, scope admissionregistrationv1.ScopeType) admissionregistrationv1.RuleWithOperations {
	r := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: groups, APIVersions: versions, Resources: resources, Scope: &scope}}
	for _, o := range operations {
		r.Operations = append(r.Operations, admissionregistrationv1.OperationType(o))
	}
	return r
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestSentence(t *testing.T) {
	type words = []string
	const everywhere = admissionregistrationv1.AllScopes
	pods := rule(words{"CREATE"}, words{""}, words{"v1"}, words{"pods"}, everywhere)
	for _, c := range []struct {
		name, want string
		spec       match.Spec
	}{
		{"no rules", "nothing: it has no rules", match.Spec{}},
		{"everything", "any operation of all resources and subresources in any API group",
			match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{rule(words{"*"}, words{"*"}, words{"*"}, words{"*/*"}, everywhere)}}},
		{"as a person would", "CREATE and UPDATE of deployments in apps/v1, in namespaces labelled team=a, if all of 2 conditions hold", match.Spec{
			Rules:             []admissionregistrationv1.RuleWithOperations{rule(words{"CREATE", "UPDATE"}, words{"apps"}, words{"v1"}, words{"deployments"}, everywhere)},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "x"}, {Name: "y"}}}},
		{"several rules, one condition", "CREATE of pods in v1; or DELETE of namespaces in the core API (cluster-scoped objects only), if the condition x holds", match.Spec{
			Rules:           []admissionregistrationv1.RuleWithOperations{pods, rule(words{"DELETE"}, words{""}, words{"*"}, words{"namespaces"}, admissionregistrationv1.ClusterScope)},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "x"}}}},
		{"subresources", "CREATE, UPDATE and CONNECT of pods/exec, services with their subresources and the subresource scale of all resources in v1 and apps/v1", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{rule(words{"CREATE", "UPDATE", "CONNECT"}, words{"", "apps"}, words{"v1"}, words{"pods/exec", "services/*", "*/scale"}, everywhere)}}},
		{"versions", "CREATE of all resources in v1 or v2 of any API group (namespaced objects only)", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{rule(words{"CREATE"}, words{"*"}, words{"v1", "v2"}, words{"*"}, admissionregistrationv1.NamespacedScope)}}},
		{"namespaces by name", "CREATE of pods in v1, in the namespaces a and b", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{pods}, NamespaceSelector: expression("kubernetes.io/metadata.name", metav1.LabelSelectorOpIn, "a", "b")}},
		{"but some namespaces", "CREATE of pods in v1, outside the namespaces kube-system", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{pods}, NamespaceSelector: expression("kubernetes.io/metadata.name", metav1.LabelSelectorOpNotIn, "kube-system")}},
		{"objects", "CREATE of pods in v1, for objects labelled app=web and sidecar and with tier gold or iron", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{pods}, ObjectSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"app": "web"},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "sidecar", Operator: metav1.LabelSelectorOpExists},
					{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: words{"gold", "iron"}}}}}},
		{"without", "CREATE of pods in v1, in namespaces without the label skip", match.Spec{
			Rules: []admissionregistrationv1.RuleWithOperations{pods}, NamespaceSelector: expression("skip", metav1.LabelSelectorOpDoesNotExist), ObjectSelector: &metav1.LabelSelector{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sentence(&c.spec); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}
