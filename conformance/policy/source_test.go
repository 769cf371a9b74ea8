// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
)

var policyNamespaces = map[string]map[string]string{"shop": {"team": "a"}, "bank": {"team": "b", "tier": "gold"}, "default": {}}

// policySource makes random policies and pods.
type policySource struct{ *rand.Rand }

func (g *policySource) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *policySource) some(chance int) bool { return g.IntN(100) < chance }

func pointer[T any](v T) *T { return &v }

func (g *policySource) policies() (policies []*validating.Policy, bindings []*validating.PolicyBinding) {
	for i := range 1 + g.IntN(3) {
		p := &validating.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}
		p.Spec.FailurePolicy = pointer(admissionregistrationv1.FailurePolicyType(g.one("Fail", "Fail", "Ignore")))
		p.Spec.MatchConstraints = g.matches(true)
		if g.some(50) {
			p.Spec.ParamKind = pointer(paramKinds[g.IntN(len(paramKinds))])
		}
		seen, conditions := g.see(p)
		names := slices.Clone(seen)
		for j := range g.IntN(4) {
			p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: fmt.Sprintf("v%d", j), Expression: g.value(names, 2)})
			names = append(names, fmt.Sprintf("variables.v%d", j))
		}
		for j := range g.IntN(3) {
			if g.some(40) {
				p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", j), Expression: g.over(conditions, seen, 1)})
			}
		}
		for range 1 + g.IntN(4) {
			v := admissionregistrationv1.Validation{Expression: g.over(conditions, names, 2)}
			if g.some(40) {
				v.Message = g.one("no", " spaces ", "<angle> & \"quote\"", "lang: žluťoučký")
			}
			if g.some(40) {
				v.MessageExpression = g.text(names)
			}
			if g.some(40) {
				v.Reason = pointer(metav1.StatusReason(g.one("Forbidden", "Invalid", "RequestEntityTooLarge")))
			}
			p.Spec.Validations = append(p.Spec.Validations, v)
		}
		for j := range g.IntN(3) {
			p.Spec.AuditAnnotations = append(p.Spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{
				Key: fmt.Sprintf("k%d", j), ValueExpression: g.one(g.text(names), g.text(names), "null", g.check()+g.one(".reason()", ".error()"))})
		}
		policies = append(policies, p)
		for j := range 1 + g.IntN(2) {
			b := &validating.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d-b%d", i, j)}}
			b.Spec.PolicyName = p.Name
			for _, action := range strings.Split(g.one("Deny", "Deny,Audit", "Warn", "Audit", "Warn,Audit", "Audit,Deny"), ",") {
				b.Spec.ValidationActions = append(b.Spec.ValidationActions, admissionregistrationv1.ValidationAction(action))
			}
			if g.some(30) {
				b.Spec.MatchResources = g.matches(g.some(50))
			}
			bindings = append(bindings, b)
		}
	}
	return policies, bindings
}

func (g *policySource) rule() admissionregistrationv1.NamedRuleWithOperations {
	var r admissionregistrationv1.NamedRuleWithOperations
	r.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(g.one("*", "*", "*", "CREATE", "UPDATE", "DELETE", "CONNECT"))}
	r.APIGroups, r.APIVersions = []string{g.one("", "", "*")}, []string{g.one("v1", "*")}
	r.Resources = []string{g.one("pods", "pods", "pods", "pods", "*", "services", "pods/*", "*/*", "pods/exec", "*/status", "namespaces", "nodes")}
	r.Scope = pointer(admissionregistrationv1.ScopeType(g.one("*", "*", "Namespaced", "Cluster")))
	if g.some(15) {
		r.ResourceNames = []string{g.one("web", "api")}
	}
	return r
}

func (g *policySource) selector(chance int, keys ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if g.some(chance) {
		operator := metav1.LabelSelectorOperator(g.one("In", "NotIn", "Exists", "DoesNotExist"))
		e := metav1.LabelSelectorRequirement{Key: g.one(keys...), Operator: operator}
		if operator == metav1.LabelSelectorOpIn || operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{g.one("a", "b", "web", "gold")}
		}
		s.MatchExpressions = []metav1.LabelSelectorRequirement{e}
	}
	return s
}

func (g *policySource) matches(rules bool) *admissionregistrationv1.MatchResources {
	m := &admissionregistrationv1.MatchResources{
		MatchPolicy:       pointer(admissionregistrationv1.MatchPolicyType(g.one("Equivalent", "Exact"))),
		NamespaceSelector: g.selector(15, "team", "tier", corev1.LabelMetadataName),
		ObjectSelector:    g.selector(15, "app", "tier"),
	}
	for rules && (len(m.ResourceRules) == 0 || g.some(40)) {
		m.ResourceRules = append(m.ResourceRules, g.rule())
	}
	if g.some(10) {
		m.ExcludeResourceRules = append(m.ExcludeResourceRules, g.rule())
	}
	return m
}

// value is an expression of any type, which may fail.
func (g *policySource) value(names []string, depth int) string {
	if len(names) > 0 && g.some(30) {
		return g.one(names...)
	}
	if depth == 0 || g.some(40) {
		return g.one("object.metadata.name", "object.spec.containers", "object.metadata.labels", "oldObject", "1", "'a'", "object.spec.priority", "request.userInfo.groups",
			"[1, 2, 3].map(x, x * 2)", "request.name", "object.spec.containers.map(c, c.image)", "object.metadata.?labels.app.orValue('none')", "{'a': 1}", "duration('1h')", "dyn(1.5)", g.check()+".reason()", g.asked())
	}
	return g.one("["+g.value(names, depth-1)+"]", g.condition(names, depth-1), "string(dyn("+g.value(names, 0)+"))", g.text(names))
}

// operand is an expression of no static type, such as maps and lists of the object.
func (g *policySource) operand(names []string) string {
	of := g.one(g.value(names, 0), "object", "object.metadata", "object.spec", "oldObject.spec", "object.spec.containers[0]", "object.metadata.labels", "{'app': 'web'}", "{'command': 'a', 'image': 'nginx', 'name': 'c0'}", "0", "0u", "0.0", "'app'")
	return g.one("dyn("+of+")", "dyn("+of+")", "dyn(["+of+"])")
}

func (g *policySource) text(names []string) string {
	if len(names) > 0 && g.some(40) {
		return "string(dyn(" + g.one(names...) + "))"
	}
	return g.one("'said ' + object.metadata.name", "' '", "'two\\nlines'", "string(object.spec.priority)", "request.operation", "'ok'", "object.spec.containers.map(c, c.image).join(', ')",
		"[1,2,3,4,5,6,7].map(x, '"+strings.Repeat("long", 200)+"').join('')")
}

func (g *policySource) condition(names []string, depth int) string {
	if depth == 0 || g.some(30) {
		list := []string{"true", "false", "object.metadata.name == 'web'", "has(object.metadata.labels)", "object.spec.containers.all(c, c.image.startsWith('r/'))",
			"request.operation == 'CREATE'", "object.spec.priority > 5", "oldObject == null", "'dev' in request.userInfo.groups", "object.spec.containers.exists(c, has(c.command))",
			"object.metadata.labels.app == 'web'", "size(object.spec.containers) < 3", "namespaceless == 1", costlyCondition, g.asked(), g.asked()}
		for _, name := range names {
			list = append(list, "string(dyn("+name+")) == string(dyn("+g.value(names, 0)+"))", "string(dyn("+name+")) == 'a'", "bool(dyn("+name+"))", "size(dyn("+name+")) > 0")
		}
		// Of any types: what cannot be compared, or looked up, is an error or false.
		a, b := g.operand(names), g.operand(names)
		list = append(list, a+" == "+b, a+" != "+b, a+" in "+b, "!("+a+" == "+b+")", "!("+a+" in "+b+")", b+"["+a+"] == "+g.value(names, 0), "size("+a+" + "+b+") == 2")
		if picked := g.one(list...); picked != "namespaceless == 1" && (picked != costlyCondition || g.some(5)) {
			return picked
		}
		return "true"
	}
	a, b := g.condition(names, depth-1), g.condition(names, depth-1)
	return g.one("("+a+" && "+b+")", "("+a+" || "+b+")", "!("+a+")", "("+a+" ? "+b+" : "+g.condition(names, 0)+")")
}

// costlyCondition exceeds what an expression may cost.
var costlyCondition = strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 6) + "x > 0" + strings.Repeat(")", 6)

func (g *policySource) pod() *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	for i := range g.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: g.one("r/nginx", "nginx", "r/redis:1")}
		if g.some(30) {
			c.Command = []string{"sh"}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if g.some(50) {
		p.Spec.Priority = pointer(int32(g.IntN(10)))
	}
	for _, key := range []string{"app", "tier"} {
		if g.some(50) {
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels[key] = g.one("web", "a", "gold")
		}
	}
	return p
}

func (g *policySource) admission() *policyAdmission {
	a := &policyAdmission{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: corev1.SchemeGroupVersion.WithResource("pods"), Name: g.one("web", "api"), Namespace: g.one(append(slices.Sorted(maps.Keys(policyNamespaces)), "shop", "bank", "shop", "bank", "")...), Operation: admission.Operation(g.one("CREATE", "CREATE", "UPDATE", "DELETE"))}
	make := func() *corev1.Pod {
		p := g.pod()
		p.Name, p.Namespace = a.Name, a.Namespace
		return p
	}
	if a.Operation != admission.Delete {
		a.New = make()
	}
	if a.Operation != admission.Create {
		a.Old = make()
	}
	return a
}
