// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// meaning returns each field of a webhook with the defaults of the API. Two that mean the
// same are the same text.
func (c *objectPair) meaning(w *admissionregistrationv1.MutatingWebhook) []fieldValue {
	return []fieldValue{
		{"clientConfig", c.destination(&w.ClientConfig)},
		{"clientConfig.caBundle", string(bytes.TrimSpace(w.ClientConfig.CABundle))},
		{"rules", said(rulesOf(w.Rules))},
		{"failurePolicy", said(orDefault(w.FailurePolicy, admissionregistrationv1.Fail))},
		{"matchPolicy", said(orDefault(w.MatchPolicy, admissionregistrationv1.Equivalent))},
		{"namespaceSelector", said(withoutEnforced(w.NamespaceSelector))},
		{"objectSelector", said(requiredLabels(w.ObjectSelector))},
		{"matchConditions", said(conditionsOf(w.MatchConditions))},
		{"sideEffects", said(w.SideEffects)},
		{"timeoutSeconds", said(orDefault(w.TimeoutSeconds, 10))},
		{"admissionReviewVersions", said(w.AdmissionReviewVersions)},
		{"reinvocationPolicy", said(orDefault(w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy))},
	}
}

func orDefault[T any](set *T, byDefault T) T {
	if set == nil {
		return byDefault
	}
	return *set
}

// destination is where a webhook is called, without a path secret.
func (c *objectPair) destination(to *admissionregistrationv1.WebhookClientConfig) string {
	if to.URL != nil {
		return c.withoutSecret(*to.URL)
	}
	s := to.Service
	if s == nil {
		return ""
	}
	return fmt.Sprintf("service %s/%s:%d%s", s.Namespace, s.Name, orDefault(s.Port, 443), c.withoutSecret(orDefault(s.Path, "")))
}

// unknownSecret stands for a part of a URL where a path secret of the Cluster belongs.
const unknownSecret = "%UNKNOWN-PATH-SECRET%"

// withoutSecret replaces the part behind the cluster's name, unless it is a phase: by the
// placeholder if it is a path secret of the Cluster, and by unknownSecret otherwise.
func (c *objectPair) withoutSecret(url string) string {
	before, rest, ours := strings.Cut(url, "/v1/clusters/")
	if !ours {
		return url
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || parts[1] == chain.Validating.String() || parts[1] == chain.Mutating.String() || parts[1] == PathSecretPlaceholder {
		return url
	}
	known := parts[0] == c.cluster.Name && c.cluster.Credentials.Has([]byte(parts[1]))
	if parts[1] = unknownSecret; known {
		parts[1] = PathSecretPlaceholder
	}
	return before + "/v1/clusters/" + strings.Join(parts, "/")
}

// WithoutPathSecret returns a URL of a registration, or its path, without the path secret, and
// whether it has one. The placeholder counts as one.
func WithoutPathSecret(url string) (without string, has bool) {
	before, rest, ours := strings.Cut(url, "/v1/clusters/")
	parts := strings.Split(rest, "/")
	if !ours || len(parts) < 3 || parts[1] == chain.Validating.String() || parts[1] == chain.Mutating.String() {
		return url, false
	}
	return before + "/v1/clusters/" + strings.Join(slices.Delete(parts, 1, 2), "/"), true
}

// rulesOf returns rules with sorted lists. The order of rules counts: the first that
// selects a request decides to which version the object is converted.
func rulesOf(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	made := make([]admissionregistrationv1.RuleWithOperations, len(rules))
	for i := range rules {
		r := rules[i].DeepCopy()
		slices.Sort(r.Operations)
		slices.Sort(r.APIGroups)
		slices.Sort(r.APIVersions)
		slices.Sort(r.Resources)
		r.Scope = new(orDefault(r.Scope, admissionregistrationv1.AllScopes))
		made[i] = *r
	}
	return made
}

// conditionsOf returns conditions by name: all of them must hold, in whatever order.
func conditionsOf(list []admissionregistrationv1.MatchCondition) map[string]string {
	conditions := make(map[string]string, len(list))
	for _, c := range list {
		conditions[c.Name] = c.Expression
	}
	return conditions
}

// requiredLabels returns what a selector requires, as sorted texts; none: it selects all.
func requiredLabels(s *metav1.LabelSelector) []string {
	list := []string{}
	if s == nil {
		return list
	}
	for key, value := range s.MatchLabels {
		list = append(list, said(metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}))
	}
	for _, r := range s.MatchExpressions {
		r.Values = slices.Sorted(slices.Values(r.Values))
		list = append(list, said(r))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// enforced are the terms that enforcers of managed clouds add to namespaceSelectors, whatever
// is applied (Azure/AKS#1771): they leave out namespaces of the platform.
func enforced() []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{
		{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		{Key: "control-plane", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
		{Key: "kubernetes.azure.com/managedby", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"aks"}},
	}
}

func withoutEnforced(s *metav1.LabelSelector) []string {
	if s == nil {
		return requiredLabels(nil)
	}
	left := s.DeepCopy()
	left.MatchExpressions = slices.DeleteFunc(left.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return slices.ContainsFunc(enforced(), func(e metav1.LabelSelectorRequirement) bool {
			return e.Key == r.Key && e.Operator == r.Operator && slices.Equal(e.Values, r.Values)
		})
	})
	return requiredLabels(left)
}

// said returns a value as text, the same for the same value.
func said(value any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return v.String()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // cannot be: all are plain data
	}
	return string(text)
}
