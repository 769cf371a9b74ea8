// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of this file are kube-apiserver's for a new object, with its field paths
// and its words (kubernetes pkg/apis/admissionregistration/validation/validation.go), but
// for expressions, which package policy compiles.

const (
	maxAnnotations     = 20
	maxValueExpression = 5 << 10 // in bytes
)

func validatePolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	errs := validation.ValidateObjectMeta(&p.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, at := &p.Spec, field.NewPath("spec")
	errs = append(errs, validateMatching(spec.FailurePolicy, spec.ParamKind, spec.MatchConstraints, at)...)
	compiles := func(string) error { return nil } // package policy says what does not
	errs = append(errs, validateConditions(spec.MatchConditions, compiles, at.Child("matchConditions"))...)
	errs = append(errs, validateVariables(spec.Variables, at.Child("variables"))...)
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			errs = append(errs, field.Required(at.Child(name), "validations or auditAnnotations must contain at least one item"))
		}
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], at.Child("validations").Index(i))...)
	}
	return append(errs, validateAnnotations(p.Name, spec.AuditAnnotations, at.Child("auditAnnotations"))...)
}

// validateMatching checks for which requests a policy of either kind is.
func validateMatching(failurePolicy *admissionregistrationv1.FailurePolicyType, params *admissionregistrationv1.ParamKind, constraints *admissionregistrationv1.MatchResources,
	at *field.Path,
) field.ErrorList {
	errs := oneOf(at.Child("failurePolicy"), failurePolicy, "Fail", "Ignore")
	errs = append(errs, validateParamKind(params, at.Child("paramKind"))...)
	if constraints == nil {
		return append(errs, field.Required(at.Child("matchConstraints"), ""))
	}
	errs = append(errs, validateMatchResources(constraints, at.Child("matchConstraints"))...)
	if len(constraints.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("matchConstraints", "resourceRules"), ""))
	}
	return errs
}

func validateMatchResources(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	opts := metav1validation.LabelSelectorValidationOptions{}
	errs := oneOf(at.Child("matchPolicy"), m.MatchPolicy, "Equivalent", "Exact")
	errs = append(errs, metav1validation.ValidateLabelSelector(m.NamespaceSelector, opts, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(m.ObjectSelector, opts, at.Child("objectSelector"))...)
	for i := range m.ResourceRules {
		errs = append(errs, validateNamedRule(&m.ResourceRules[i], at.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(&m.ExcludeResourceRules[i], at.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateNamedRule(r *admissionregistrationv1.NamedRuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range r.ResourceNames {
		here := at.Child("resourceNames").Index(i)
		for _, reason := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(here, name, reason))
		}
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(here, name))
		}
	}
	return append(errs, validateRule(&r.RuleWithOperations, at)...)
}

var identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")

// reserved are the words that CEL keeps for itself.
func reserved() []string {
	return []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while",
	}
}

// validateVariables refuses two of one name as well: kube-apiserver takes the last.
func validateVariables(variables []admissionregistrationv1.Variable, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, v := range variables {
		at := at.Index(i)
		switch {
		case strings.TrimSpace(v.Name) == "":
			errs = append(errs, field.Required(at.Child("name"), "name is not specified"))
		case !identifier.MatchString(v.Name) || slices.Contains(reserved(), v.Name):
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		case names[v.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		names[v.Name] = true
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
		}
	}
	return errs
}

func validateValidation(v *admissionregistrationv1.Validation, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
	}
	if v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "" {
		errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(message, "\n\r"):
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
	}
	return append(errs, oneOf(at.Child("reason"), v.Reason,
		metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
}

func validateAnnotations(policy string, annotations []admissionregistrationv1.AuditAnnotation, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > maxAnnotations {
		errs = append(errs, field.TooMany(at, len(annotations), maxAnnotations))
	}
	keys := map[string]bool{}
	for i, a := range annotations {
		at := at.Index(i)
		for _, reason := range utilvalidation.IsQualifiedName(policy + "/" + a.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), policy+"/"+a.Key, reason))
		}
		if keys[a.Key] {
			errs = append(errs, field.Duplicate(at.Child("key"), a.Key))
		}
		keys[a.Key] = true
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			errs = append(errs, field.Required(at.Child("valueExpression"), "valueExpression is not specified"))
		case len(text) > maxValueExpression:
			errs = append(errs, field.Required(at.Child("valueExpression"), fmt.Sprintf("must not exceed %d bytes in length", maxValueExpression)))
		}
	}
	return errs
}

func validatePolicyBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (*binding, field.ErrorList) {
	clusters, errs := validateAnyBinding(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	return clusters, append(errs, validateActions(b.Spec.ValidationActions, field.NewPath("spec", "validationActions"))...)
}

// validateAnyBinding checks what bindings of both kinds say, and reads which clusters the
// annotation selects.
func validateAnyBinding(meta *metav1.ObjectMeta, policy string, params *admissionregistrationv1.ParamRef,
	resources *admissionregistrationv1.MatchResources,
) (*binding, field.ErrorList) {
	errs := validation.ValidateObjectMeta(meta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	clusters, err := readClusterSelector(meta)
	if err != nil {
		errs = append(errs, err)
	}
	at := field.NewPath("spec")
	if policy == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	} else {
		for _, reason := range validation.NameIsDNSSubdomain(policy, false) {
			errs = append(errs, field.Invalid(at.Child("policyName"), policy, reason))
		}
	}
	errs = append(errs, validateParamRef(params, at.Child("paramRef"))...)
	return clusters, append(errs, validateMatchResources(resources, at.Child("matchResources"))...)
}

func validateActions(actions []admissionregistrationv1.ValidationAction, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(actions) == 0 {
		errs = append(errs, field.Required(at, "at least one validation action is required"))
	}
	for i := range actions {
		errs = append(errs, oneOf(at.Index(i), &actions[i], "Audit", "Deny", "Warn")...)
		if slices.Contains(actions[:i], actions[i]) {
			errs = append(errs, field.Duplicate(at.Index(i), actions[i]))
		}
	}
	if slices.Contains(actions, admissionregistrationv1.Deny) && slices.Contains(actions, admissionregistrationv1.Warn) {
		errs = append(errs, field.Invalid(at, actions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
