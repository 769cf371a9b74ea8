// SPDX-License-Identifier: Apache-2.0

package random

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func (w *writer) rules() []admissionregistrationv1.RuleWithOperations {
	rules := make([]admissionregistrationv1.RuleWithOperations, w.between(1, 3))
	for i := range rules {
		rules[i] = w.rule(pick(w.source, w.theme...))
	}
	return rules
}

// rule returns a rule which is likely to select requests on k.
func (w *writer) rule(k kind) admissionregistrationv1.RuleWithOperations {
	k = w.inAForm(k)
	r := admissionregistrationv1.RuleWithOperations{
		Operations: w.operations(),
		Rule: admissionregistrationv1.Rule{
			APIGroups:   w.choices(k.group, "*", "apps", "other.example.com"),
			APIVersions: w.choices(k.version, "*", "v1", "v2"),
			Resources:   w.resources(k.resource),
			Scope:       w.scope(),
		},
	}
	if w.anyForm {
		r.APIGroups, r.APIVersions = []string{"*"}, []string{"*"}
	}
	return r
}

func (w *writer) operations() []admissionregistrationv1.OperationType {
	if w.percent(40) {
		return []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	return some(w.source, 1, 4, admissionregistrationv1.Create, admissionregistrationv1.Update,
		admissionregistrationv1.Delete, admissionregistrationv1.Connect)
}

// choices returns what fits, mostly: alone, in a list, or any.
func (w *writer) choices(fits, any, further, other string) []string {
	switch n := w.IntN(100); {
	case n < 40:
		return []string{any}
	case n < 75:
		return []string{fits}
	case n < 92 && further != fits:
		return some(w.source, 2, 2, fits, further)
	case n < 95:
		return []string{further}
	}
	return []string{other}
}

// resources returns one of the forms that a rule may have.
func (w *writer) resources(r string) []string {
	return pick(w.source,
		[]string{"*"}, []string{"*/*"}, []string{"*/*"}, []string{r}, []string{r, r + "/*"}, []string{r + "/*"},
		[]string{r, "*/scale"}, []string{"*/scale"}, []string{"*/status", r}, []string{r, r + "/status"},
		[]string{"pods", "pods/exec", r + "/scale"}, []string{"pods/*", "services"}, []string{"*", "pods/exec"},
		[]string{"services"})
}

func (w *writer) scope() *admissionregistrationv1.ScopeType {
	if w.percent(70) {
		return pointer(admissionregistrationv1.AllScopes)
	}
	return pointer(pick(w.source, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope))
}

// everything selects any request.
func everything() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"},
			Scope: pointer(admissionregistrationv1.AllScopes),
		},
	}}
}
