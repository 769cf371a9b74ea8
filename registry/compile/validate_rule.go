// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateRule(r *admissionregistrationv1.RuleWithOperations, at *field.Path) field.ErrorList {
	errs := validateOperations(r.Operations, at.Child("operations"))
	errs = append(errs, lonelyWildcard(r.APIGroups, "API groups", at.Child("apiGroups"))...)
	errs = append(errs, lonelyWildcard(r.APIVersions, "API versions", at.Child("apiVersions"))...)
	for i, version := range r.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateResources(r.Resources, at.Child("resources"))...)
	return append(errs, oneOf(at.Child("scope"), r.Scope, "*", "Cluster", "Namespaced")...)
}

func validateOperations(operations []admissionregistrationv1.OperationType, at *field.Path) field.ErrorList {
	errs := lonelyWildcard(operations, "operations", at)
	for i := range operations {
		errs = append(errs, oneOf(at.Index(i), &operations[i], "*", "CONNECT", "CREATE", "DELETE", "UPDATE")...)
	}
	return errs
}

// lonelyWildcard demands at least one value, and that "*" stands alone. The
// empty string is a value: the core group.
func lonelyWildcard[T ~string](values []T, what string, at *field.Path) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(values) > 1 && slices.Contains(values, "*") {
		return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

func validateResources(resources []string, at *field.Path) field.ErrorList {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateSubresources(resources, at)
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(at, resources, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(resources, "*") && slices.ContainsFunc(resources, isPlainResource) {
		errs = append(errs, field.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

func isPlainResource(r string) bool { return r != "" && r != "*" && !strings.Contains(r, "/") }

// validateSubresources refuses entries that an earlier x/* or */x includes.
func validateSubresources(resources []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	anySubresource, anyResource := map[string]bool{}, map[string]bool{}
	for i, entry := range resources {
		if entry == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		resource, sub, ok := strings.Cut(entry, "/")
		if !ok {
			continue
		}
		if anySubresource[resource] {
			errs = append(errs, field.Invalid(at.Index(i), entry, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, entry)))
		}
		if anyResource[sub] {
			errs = append(errs, field.Invalid(at.Index(i), entry, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, entry)))
		}
		anySubresource[resource] = anySubresource[resource] || sub == "*"
		anyResource[sub] = anyResource[sub] || resource == "*"
	}
	return errs
}
