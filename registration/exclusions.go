// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/match"
)

// exclusions say the bypass rules in the API server's own terms: with the
// dispatcher down, what is bypassed must go on. Rules on namespaces alone become
// a selector, which costs nothing; all others a condition each.
func exclusions(rules []match.RequestRule) (*metav1.LabelSelector, []admissionregistrationv1.MatchCondition) {
	selector := &metav1.LabelSelector{}
	var namespaces []string
	var conditions []admissionregistrationv1.MatchCondition
	for i := range rules {
		if onlyNamespaces(&rules[i]) {
			namespaces = append(namespaces, rules[i].Namespaces...)
			continue
		}
		conditions = append(conditions, admissionregistrationv1.MatchCondition{
			Name:       conditionName(i, rules[i].Name),
			Expression: "!(" + expression(&rules[i]) + ")",
		})
	}
	if len(namespaces) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key:      corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpNotIn,
			Values:   reduced(namespaces),
		}}
	}
	return selector, conditions
}

func onlyNamespaces(r *match.RequestRule) bool {
	return len(r.Namespaces) > 0 &&
		len(r.Users)+len(r.Groups)+len(r.ServiceAccounts)+len(r.Resources)+len(r.Operations)+len(r.ExtraKeys) == 0
}

// conditionName makes a qualified name of a rule's, which may be any text.
func conditionName(i int, name string) string {
	slug := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, name)
	slug = strings.Trim(slug[:min(len(slug), 40)], "-")
	return strings.Trim(fmt.Sprintf("not-bypassed-%d-%s", i, slug), "-")
}

// expression is the CEL text of one rule: all fields that are set must fit.
func expression(r *match.RequestRule) string {
	var all []string
	and := func(text string) {
		if text != "" {
			all = append(all, text)
		}
	}
	if len(r.Namespaces) > 0 {
		and("has(request.namespace) && request.namespace in " + list(r.Namespaces))
	}
	if len(r.Users) > 0 {
		and("has(request.userInfo.username) && request.userInfo.username in " + list(r.Users))
	}
	if len(r.Groups) > 0 {
		and("has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in " + list(r.Groups) + ")")
	}
	and(serviceAccounts(r.ServiceAccounts))
	and(resources(r.Resources))
	if len(r.Operations) > 0 {
		and("request.operation in " + list(r.Operations))
	}
	return strings.Join(all, " && ")
}

func serviceAccounts(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var any []string
	for _, s := range names {
		namespace, name, _ := strings.Cut(s, "/")
		prefix := "system:serviceaccount:" + namespace + ":"
		if name == "*" {
			pattern := "^" + regexp.QuoteMeta(prefix) + "[^:]+$"
			any = append(any, fmt.Sprintf("request.userInfo.username.matches(%s)", quote(pattern)))
			continue
		}
		any = append(any, fmt.Sprintf("request.userInfo.username == %s", quote(prefix+name)))
	}
	return "has(request.userInfo.username) && " + either(any)
}

func resources(patterns []string) string {
	if len(patterns) == 0 {
		return ""
	}
	var any []string
	for _, s := range patterns {
		group, rest, _ := strings.Cut(s, "/")
		resource, sub, _ := strings.Cut(rest, "/")
		var all []string
		if group != "*" {
			all = append(all, "request.resource.group == "+quote(group))
		}
		if resource != "*" {
			all = append(all, "request.resource.resource == "+quote(resource))
		}
		switch sub {
		case "*":
		case "":
			all = append(all, `(!has(request.subResource) || request.subResource == "")`)
		default:
			all = append(all, "has(request.subResource) && request.subResource == "+quote(sub))
		}
		if len(all) == 0 {
			all = []string{"true"}
		}
		any = append(any, strings.Join(all, " && "))
	}
	return either(any)
}

// either joins alternatives, in parentheses where there are several.
func either(any []string) string {
	if len(any) == 1 {
		return "(" + any[0] + ")"
	}
	return "((" + strings.Join(any, ") || (") + "))"
}

func list(values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a CEL string literal. What is not printable ASCII is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
