// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// policy is one about some kinds, whose expressions look at their fields.
func (g *source) policy(c *checkers) *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{}
	var kinds []schema.GroupVersionKind
	for range 1 + g.IntN(2) {
		rule := admissionregistrationv1.NamedRuleWithOperations{}
		for range 1 + g.IntN(2) {
			kind := c.kinds[g.IntN(len(c.kinds))]
			if g.some(40) {
				kind = []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, widget, {Version: "v1", Kind: "Secret"}}[g.IntN(4)]
			}
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			kinds = append(kinds, kind)
			rule.APIGroups, rule.APIVersions = append(rule.APIGroups, kind.Group), append(rule.APIVersions, kind.Version)
			rule.Resources = append(rule.Resources, resource.Resource)
		}
		if g.some(10) {
			rule.Resources = append(rule.Resources, "*/scale", "nothing")
		}
		if g.some(5) {
			rule.APIVersions = []string{"*"}
		}
		p.Spec.MatchConstraints.ResourceRules = append(p.Spec.MatchConstraints.ResourceRules, rule)
	}
	roots := []string{"object", "object", "object", "oldObject"}
	if g.some(25) {
		param := []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, widget, {Group: "example.org", Version: "v1", Kind: "Unknown"}}[g.IntN(3)]
		p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: param.GroupVersion().String(), Kind: param.Kind}
		roots, kinds = append(roots, "params"), append(kinds, param)
	}
	expression := func() string {
		shape, _ := c.types.Shape(kinds[g.IntN(len(kinds))])
		return g.expression(roots[g.IntN(len(roots))], shape)
	}
	if g.some(30) {
		p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: "v", Expression: expression()})
	}
	for range 1 + g.IntN(3) {
		v := admissionregistrationv1.Validation{Expression: expression()}
		switch {
		case p.Spec.Variables != nil && g.some(50):
			v.Expression = "variables.v == " + []string{"true", "1", "variables.w"}[g.IntN(3)]
		case g.some(20):
			v.Expression = []string{
				`request.operation == "CREATE"`, "request.nothing == 1", `namespaceObject.metadata.labels.a == "b"`, "namespaceObject.metadata.nothing",
				`authorizer.group("").resource("pods").check("get").allowed()`, "objekt.a", "request.dryRun + 1",
			}[g.IntN(7)]
		}
		if g.some(30) {
			v.MessageExpression = expression()
		}
		p.Spec.Validations = append(p.Spec.Validations, v)
	}
	return p
}

// expression looks at a field of the shape, or at one that there is not.
func (g *source) expression(root string, s *policyschema.Shape) string {
	path, depth := root, 0
	for s != nil && g.some(90) {
		switch s.Form {
		case policyschema.Object:
			names := make([]string, 0, len(s.Fields))
			for name := range s.Fields {
				names = append(names, name)
			}
			slices.Sort(names)
			names = slices.DeleteFunc(names, func(n string) bool { return strings.ContainsAny(n, "-.$/") })
			if len(names) == 0 {
				return g.compare(path)
			}
			name := names[g.IntN(len(names))]
			s = s.Fields[name]
			if g.some(8) {
				name += "x"
			}
			path += "." + name
		case policyschema.List:
			if s = s.Element; g.some(50) {
				path += fmt.Sprintf("[%d]", g.IntN(2))
				continue
			}
			depth++
			x := fmt.Sprint("x", depth)
			return fmt.Sprintf("%s.%s(%s, %s)", path, []string{"all", "exists"}[g.IntN(2)], x, g.expression(x, s))
		case policyschema.Map:
			path, s = path+[]string{`["a"]`, ".a", "[1]"}[g.IntN(3)], s.Element
		default:
			return g.compare(path)
		}
	}
	return g.compare(path)
}

func (g *source) compare(path string) string {
	return fmt.Sprintf([]string{
		"has(%s)", "%s == 1", `%s == "a"`, "%s == true", "%s + 1 > 2", `%s.startsWith("a")`, "size(%s) > 1", "%s", `quantity(%s).isGreaterThan(quantity("1"))`, `%s < timestamp("2020-01-01T00:00:00Z")`, `string(%s) == "a"`, `%s == b"a"`,
	}[g.IntN(12)], path)
}
