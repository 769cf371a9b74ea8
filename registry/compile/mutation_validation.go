// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMutatingPolicy applies kube-apiserver's rules for a MutatingAdmissionPolicy, as
// validatePolicy does for the other kind.
func validateMutatingPolicy(p *admissionregistrationv1.MutatingAdmissionPolicy) field.ErrorList {
	errs := validation.ValidateObjectMeta(&p.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, at := &p.Spec, field.NewPath("spec")
	errs = append(errs, validateMatching(spec.FailurePolicy, spec.ParamKind, spec.MatchConstraints, at)...)
	errs = append(errs, validateMutable(spec.MatchConstraints, at.Child("matchConstraints"))...)
	compiles := func(string) error { return nil } // package policy says what does not
	errs = append(errs, validateConditions(spec.MatchConditions, compiles, at.Child("matchConditions"))...)
	errs = append(errs, validateVariables(spec.Variables, at.Child("variables"))...)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(at.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, validateMutation(&spec.Mutations[i], at.Child("mutations").Index(i))...)
	}
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(at.Child("reinvocationPolicy"), ""))
	}
	return append(errs, oneOf(at.Child("reinvocationPolicy"), &spec.ReinvocationPolicy, "IfNeeded", "Never")...)
}

// validateMutable refuses operations without an object that could be mutated.
func validateMutable(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m == nil {
		return nil
	}
	for i := range m.ResourceRules {
		for j, operation := range m.ResourceRules[i].Operations {
			errs = append(errs, oneOf(at.Child("resourceRules").Index(i).Child("operations").Index(j), &operation, "*", "CREATE", "UPDATE")...)
		}
	}
	return errs
}

// merges reports whether a policy has apply configurations.
func merges(p *admissionregistrationv1.MutatingAdmissionPolicySpec) bool {
	return slices.ContainsFunc(p.Mutations, func(m admissionregistrationv1.Mutation) bool { return m.ApplyConfiguration != nil })
}

func validateMutation(m *admissionregistrationv1.Mutation, at *field.Path) field.ErrorList {
	patch, configuration := at.Child("jsonPatch"), at.Child("applyConfiguration")
	var errs field.ErrorList
	switch m.PatchType {
	case "":
		return field.ErrorList{field.Required(at.Child("patchType"), "")}
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.ApplyConfiguration != nil {
			errs = append(errs, field.Invalid(configuration, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
		if m.JSONPatch == nil {
			return append(errs, field.Required(patch, "must be specified when patchType is JSONPatch"))
		}
		return append(errs, validateExpression(m.JSONPatch.Expression, patch)...)
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.JSONPatch != nil {
			errs = append(errs, field.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
		if m.ApplyConfiguration == nil {
			return append(errs, field.Required(configuration, "must be specified when patchType is ApplyConfiguration"))
		}
		return append(errs, validateExpression(m.ApplyConfiguration.Expression, configuration)...)
	}
	return oneOf(at.Child("patchType"), &m.PatchType, admissionregistrationv1.PatchTypeApplyConfiguration, admissionregistrationv1.PatchTypeJSONPatch)
}

func validateExpression(expression string, at *field.Path) field.ErrorList {
	if strings.TrimSpace(expression) == "" {
		return field.ErrorList{field.Required(at.Child("expression"), "")}
	}
	return nil
}

func validateMutatingPolicyBinding(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) (*binding, field.ErrorList) {
	clusters, errs := validateAnyBinding(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	return clusters, append(errs, validateMutable(b.Spec.MatchResources, field.NewPath("spec", "matchResources"))...)
}
