// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateParamKind and validateParamRef are kube-apiserver's, as what is in
// policy_validation.go.
func validateParamKind(kind *admissionregistrationv1.ParamKind, at *field.Path) field.ErrorList {
	if kind == nil {
		return nil
	}
	var errs field.ErrorList
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	switch {
	case kind.APIVersion == "":
		errs = append(errs, field.Required(at.Child("apiVersion"), ""))
	case err != nil:
		errs = append(errs, field.Invalid(at.Child("apiVersion"), kind.APIVersion, err.Error()))
	default:
		if gv.Group != "" {
			errs = append(errs, invalid(at.Child("apiVersion"), gv.Group, "", utilvalidation.IsDNS1123Subdomain(gv.Group))...)
		}
		if gv.Version == "" {
			errs = append(errs, field.Invalid(at.Child("apiVersion"), kind.APIVersion, "version must be specified"))
		} else {
			errs = append(errs, invalid(at.Child("apiVersion"), gv.Version, "", utilvalidation.IsDNS1035Label(gv.Version))...)
		}
	}
	if kind.Kind == "" {
		return append(errs, field.Required(at.Child("kind"), ""))
	}
	return append(errs, invalid(at.Child("kind"), kind.Kind, "may have mixed case, but should otherwise match: ", utilvalidation.IsDNS1035Label(strings.ToLower(kind.Kind)))...)
}

// invalid is one error with all reasons, or none.
func invalid(at *field.Path, value, begin string, reasons []string) field.ErrorList {
	if len(reasons) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, begin+strings.Join(reasons, ","))}
}

func validateParamRef(ref *admissionregistrationv1.ParamRef, at *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	for _, reason := range content.IsPathSegmentName(ref.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), ref.Name, reason))
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(ref.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	switch {
	case ref.Name != "" && ref.Selector != nil:
		for _, name := range []string{"name", "selector"} {
			errs = append(errs, field.Forbidden(at.Child(name), "name and selector are mutually exclusive"))
		}
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	}
	if ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction == "" {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, oneOf(at.Child("parameterNotFoundAction"), ref.ParameterNotFoundAction, admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction)...)
}
