// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// Warning is what checking an expression against the types of kinds has found, in
// kube-apiserver's words: a line for each kind, with a picture of the expression.
type Warning struct {
	At         *field.Path
	Expression string
	Text       string
}

// Line returns the text as one line, without the pictures.
func (w Warning) Line() string { return withoutPicture(strings.ReplaceAll(w.Text, "\n\n", "\n")) }

// maxChecked bounds the kinds of one rule against which expressions are checked, as in
// kube-apiserver: when a rule has as many, those of the rules after it are not looked at.
const maxChecked = 10

// Check checks the validations of a policy and their messages against the kinds that its
// rules name, as far as types knows them. What it finds alters nothing: an object may be of
// another version, and an expression may ask for what is there. It keeps what it has found
// for the next load, as Compile does.
func (c *Compiler) Check(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, types *policyschema.Types, at *field.Path) []Warning {
	read := admissionregistrationv1.ValidatingAdmissionPolicySpec{Variables: spec.Variables, Validations: spec.Validations, ParamKind: spec.ParamKind}
	if spec.MatchConstraints != nil {
		read.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: spec.MatchConstraints.ResourceRules}
	}
	if c.checker == nil || c.checked != types {
		c.checker, c.checked = c.cel.NewChecker(types), types
	}
	key := fmt.Sprintf("checked %s by %p", sumOf(read), types)
	found, _ := kept(c, key, func(string) (*[]Warning, field.ErrorList) {
		c.compiled-- // which counts policies
		made := c.check(spec, at)
		return &made, nil
	})
	return *found
}

func (c *Compiler) check(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, at *field.Path) (warnings []Warning) {
	kinds := kindsToCheck(spec.MatchConstraints, c.checked)
	params := schema.GroupVersionKind{}
	if p := spec.ParamKind; p != nil {
		params = schema.FromAPIVersionAndKind(p.APIVersion, p.Kind)
	}
	all := make([]*celenv.Expressions, len(kinds))
	for i, kind := range kinds {
		all[i] = c.checker.For(kind, params, spec.Variables)
	}
	check := func(at *field.Path, expression string) {
		var lines []string
		for i, expressions := range all {
			if err := expressions.Check(expression); err != nil {
				lines = append(lines, fmt.Sprintf("%v: %v\n", kinds[i], err))
			}
		}
		if len(lines) > 0 {
			warnings = append(warnings, Warning{at, expression, strings.Join(lines, "\n")})
		}
	}
	for i := range spec.Validations {
		v, at := &spec.Validations[i], at.Child("validations").Index(i)
		check(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return warnings
}

// kindsToCheck returns the kinds that rules name, and whose types are known, in their order
// (TypeChecker.typesToCheck in kube-apiserver). Rules with a wildcard name none.
func kindsToCheck(m *admissionregistrationv1.MatchResources, types *policyschema.Types) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]bool{}
	for i := range m.ResourceRules {
		if addKinds(found, &m.ResourceRules[i].Rule, types) >= maxChecked {
			break
		}
	}
	kinds := make([]schema.GroupVersionKind, 0, len(found))
	for kind := range found {
		if _, ok := types.Shape(kind); ok {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// addKinds adds the kinds of one rule, and returns how many it has.
func addKinds(found map[schema.GroupVersionKind]bool, r *admissionregistrationv1.Rule, types *policyschema.Types) (count int) {
	wild := func(s string) bool { return strings.Contains(s, "*") }
	if slices.ContainsFunc(r.APIGroups, wild) || slices.ContainsFunc(r.APIVersions, wild) {
		return 0
	}
	for _, group := range slices.Sorted(slices.Values(r.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(r.APIVersions)) {
			for _, resource := range slices.Sorted(slices.Values(r.Resources)) {
				if strings.ContainsAny(resource, "*/") {
					continue
				}
				kind, ok := types.Kind(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
				if !ok {
					continue
				}
				found[kind] = true
				if count++; count == maxChecked {
					return count
				}
			}
		}
	}
	return count
}
