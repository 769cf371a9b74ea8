// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/match"
)

// sentence says in plain words which reviews a webhook wants, such as "CREATE and
// UPDATE of deployments in apps/v1, in namespaces labelled team=a, if all of 2
// conditions hold".
func sentence(s *match.Spec) string {
	if len(s.Rules) == 0 {
		return "nothing: it has no rules"
	}
	rules := make([]string, len(s.Rules))
	for i := range s.Rules {
		rules[i] = ruleWords(&s.Rules[i])
	}
	parts := []string{strings.Join(rules, "; or ")}
	if words := namespaceWords(s.NamespaceSelector); words != "" {
		parts = append(parts, words)
	}
	if words := requirementWords(s.ObjectSelector); words != "" {
		parts = append(parts, "for objects "+words)
	}
	switch n := len(s.MatchConditions); n {
	case 0:
	case 1:
		parts = append(parts, "if the condition "+s.MatchConditions[0].Name+" holds")
	default:
		parts = append(parts, fmt.Sprintf("if all of %d conditions hold", n))
	}
	return strings.Join(parts, ", ")
}

func ruleWords(r *admissionregistrationv1.RuleWithOperations) string {
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	text := listed(operations, "and", "any operation") + " of " + resourceWords(r.Resources) + " in " + groupWords(r.APIGroups, r.APIVersions)
	if r.Scope == nil {
		return text
	}
	switch *r.Scope {
	case admissionregistrationv1.NamespacedScope:
		return text + " (namespaced objects only)"
	case admissionregistrationv1.ClusterScope:
		return text + " (cluster-scoped objects only)"
	}
	return text
}

func resourceWords(resources []string) string {
	words := make([]string, len(resources))
	for i, r := range resources {
		name, sub, split := strings.Cut(r, "/")
		switch {
		case r == "*":
			words[i] = "all resources"
		case r == "*/*":
			return "all resources and subresources"
		case !split:
			words[i] = r
		case sub == "*":
			words[i] = name + " with their subresources"
		case name == "*":
			words[i] = "the subresource " + sub + " of all resources"
		default:
			words[i] = r
		}
	}
	return listed(words, "and", "all resources")
}

// groupWords says groups and versions as apiVersion does.
func groupWords(groups, versions []string) string {
	anyVersion := slices.Contains(versions, "*")
	if slices.Contains(groups, "*") {
		if anyVersion {
			return "any API group"
		}
		return listed(versions, "or", "") + " of any API group"
	}
	var words []string
	for _, g := range groups {
		switch {
		case g == "" && anyVersion:
			words = append(words, "the core API")
		case anyVersion:
			words = append(words, g)
		default:
			for _, v := range versions {
				words = append(words, strings.TrimPrefix(g+"/"+v, "/"))
			}
		}
	}
	return listed(words, "and", "any API group")
}

// namespaceWords says a namespaceSelector. A selector of names alone, which many
// have, reads as names.
func namespaceWords(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 1 {
		if e := s.MatchExpressions[0]; e.Key == corev1.LabelMetadataName && len(e.Values) > 0 {
			switch e.Operator {
			case metav1.LabelSelectorOpIn:
				return "in the namespaces " + listed(e.Values, "and", "")
			case metav1.LabelSelectorOpNotIn:
				return "outside the namespaces " + listed(e.Values, "and", "")
			}
		}
	}
	words := requirementWords(s)
	if words == "" {
		return ""
	}
	return "in namespaces " + words
}

// requirementWords says what labels a selector asks for; nothing if it takes all.
func requirementWords(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	var has, rest []string
	for _, key := range sortedKeys(s.MatchLabels) {
		has = append(has, key+"="+s.MatchLabels[key])
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpExists:
			has = append(has, e.Key)
		case metav1.LabelSelectorOpDoesNotExist:
			rest = append(rest, "without the label "+e.Key)
		case metav1.LabelSelectorOpIn:
			rest = append(rest, "with "+e.Key+" "+listed(e.Values, "or", ""))
		case metav1.LabelSelectorOpNotIn:
			rest = append(rest, "with "+e.Key+" not "+listed(e.Values, "or", ""))
		}
	}
	if len(has) > 0 {
		rest = append([]string{"labelled " + listed(has, "and", "")}, rest...)
	}
	return listed(rest, "and", "")
}

// selectorText is a selector as kubectl writes it; nothing if it takes all.
func selectorText(s *metav1.LabelSelector) string {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(s)
}

// listed joins words as people do. A "*" among them, or nothing at all, is all.
func listed(words []string, and, all string) string {
	if slices.Contains(words, "*") || len(words) == 0 {
		return all
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}
