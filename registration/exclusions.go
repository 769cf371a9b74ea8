// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/exempt"
)

// mostExclusions is how many conditions the bypass rules may take, of the 64 that
// the API server accepts.
const mostExclusions = 48

// exclusions say the bypass rules in the API server's own terms: with the
// dispatcher down, what is bypassed must go on. They are conditions on fields of
// the request, as the rules are. A namespaceSelector would be quicker, but goes by
// labels where the request is about a Namespace, and those a user writes.
func exclusions(rules []exempt.Rule) []admissionregistrationv1.MatchCondition {
	var inNamespaces exempt.Rule // all rules on namespaces alone
	var others []exempt.Rule
	for i := range rules {
		if onlyNamespaces(&rules[i]) {
			inNamespaces.Namespaces = append(inNamespaces.Namespaces, rules[i].Namespaces...)
		} else {
			others = append(others, rules[i])
		}
	}
	var conditions []admissionregistrationv1.MatchCondition
	if len(inNamespaces.Namespaces) > 0 {
		inNamespaces.Namespaces = slices.Compact(slices.Sorted(slices.Values(inNamespaces.Namespaces)))
		conditions = append(conditions, admissionregistrationv1.MatchCondition{
			Name: "not-in-bypassed-namespaces", Expression: negation(requestRule(&inNamespaces)),
		})
	}
	size := (len(others) + mostExclusions - 1) / mostExclusions // rules of one condition
	for first := 0; first < len(others); first += size {
		conditions = append(conditions, exclusion(others[first:min(first+size, len(others))], first))
	}
	return conditions
}

// exclusion is the condition of one rule, or of several; first numbers them.
func exclusion(rules []exempt.Rule, first int) admissionregistrationv1.MatchCondition {
	name := conditionName(first, rules[0].Name)
	if len(rules) > 1 {
		name = fmt.Sprintf("not-bypassed-%d-to-%d", first, first+len(rules)-1)
	}
	terms := make([]string, len(rules))
	for i := range rules {
		terms[i] = negation(requestRule(&rules[i]))
	}
	return admissionregistrationv1.MatchCondition{Name: name, Expression: allOf(terms...)}
}

// admissionIsExempt is the condition of the kinds that configure admission. The API
// server sends them to webhooks of static manifests only, and a cluster must be
// able to change them while the dispatcher is down.
func admissionIsExempt() admissionregistrationv1.MatchCondition {
	kinds := exempt.AdmissionResources()
	return admissionregistrationv1.MatchCondition{
		Name:       "not-of-admission",
		Expression: negation(allOf(equals("request.resource.group", admissionregistrationv1.GroupName), oneOf("request.resource.resource", kinds[:]))),
	}
}

// onlyNamespaces reports whether a rule looks at the namespace alone. A rule on "*"
// is about that name: namespaces are no patterns.
func onlyNamespaces(r *exempt.Rule) bool {
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
