// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// The rules of this file are kube-apiserver's for a new object, with its field paths
// and its words (kubernetes pkg/apis/admissionregistration/validation/validation.go).

func validateConfiguration(c *manifest.Configuration, cel conditionCompiler) field.ErrorList {
	errs := validation.ValidateObjectMeta(&c.Meta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	names := map[string]bool{}
	for i := range c.Webhooks {
		at := c.Webhook(i)
		w := &c.Webhooks[i]
		errs = append(errs, validateWebhook(w, c.Beta, cel, at)...)
		if names[w.Name] && w.Name != "" {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Name))
		}
		names[w.Name] = true
	}
	return errs
}

func validateWebhook(w *admissionregistrationv1.MutatingWebhook, beta bool, cel conditionCompiler, at *field.Path) field.ErrorList {
	errs := utilvalidation.IsFullyQualifiedName(at.Child("name"), w.Name)
	for i := range w.Rules {
		errs = append(errs, validateRule(&w.Rules[i], at.Child("rules").Index(i))...)
	}
	errs = append(errs, oneOf(at.Child("failurePolicy"), w.FailurePolicy, "Fail", "Ignore")...)
	errs = append(errs, oneOf(at.Child("matchPolicy"), w.MatchPolicy, "Equivalent", "Exact")...)
	errs = append(errs, validateSideEffects(w.SideEffects, beta, at.Child("sideEffects"))...)
	errs = append(errs, validateTimeout(w.TimeoutSeconds, at.Child("timeoutSeconds"))...)
	errs = append(errs, validateSelectors(w, at)...)
	errs = append(errs, oneOf(at.Child("reinvocationPolicy"), w.ReinvocationPolicy, "IfNeeded", "Never")...)
	errs = append(errs, validateClientConfig(&w.ClientConfig, at.Child("clientConfig"))...)
	errs = append(errs, validateConditions(w.MatchConditions, cel, at.Child("matchConditions"))...)
	return append(errs, validateReviewVersions(w.AdmissionReviewVersions, at.Child("admissionReviewVersions"))...)
}

// oneOf checks an enumeration; unset is fine.
func oneOf[T ~string](at *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil || slices.Contains(supported, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, *value, supported)}
}

func validateSideEffects(s *admissionregistrationv1.SideEffectClass, beta bool, at *field.Path) field.ErrorList {
	supported := []admissionregistrationv1.SideEffectClass{"None", "NoneOnDryRun"}
	if beta {
		supported = append(supported, "Some", "Unknown")
	}
	if s == nil {
		return field.ErrorList{field.Required(at, "must specify one of None, NoneOnDryRun")}
	}
	return oneOf(at, s, supported...)
}

func validateTimeout(seconds *int32, at *field.Path) field.ErrorList {
	if seconds == nil || (1 <= *seconds && *seconds <= 30) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *seconds, "the timeout value must be between 1 and 30 seconds")}
}

func validateSelectors(w *admissionregistrationv1.MutatingWebhook, at *field.Path) field.ErrorList {
	opts := metav1validation.LabelSelectorValidationOptions{}
	errs := metav1validation.ValidateLabelSelector(w.NamespaceSelector, opts, at.Child("namespaceSelector"))
	return append(errs, metav1validation.ValidateLabelSelector(w.ObjectSelector, opts, at.Child("objectSelector"))...)
}

// validateReviewVersions demands a version that we speak (C29).
func validateReviewVersions(versions []string, at *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must specify one of v1, v1beta1")}
	}
	var errs field.ErrorList
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		for _, reason := range utilvalidation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, reason))
		}
	}
	if firstVersion(versions) == 0 {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

// firstVersion returns the first version that we speak, or 0.
func firstVersion(versions []string) codec.Version {
	for _, s := range versions {
		if v, ok := codec.ParseVersion(s); ok {
			return v
		}
	}
	return 0
}

// maxConditions is kube-apiserver's limit of matchConditions of one webhook.
const maxConditions = 64

// conditionCompiler returns why an expression does not compile, or nil.
type conditionCompiler func(expression string) error

func validateConditions(conditions []admissionregistrationv1.MatchCondition, cel conditionCompiler, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxConditions {
		errs = append(errs, field.TooMany(at, len(conditions), maxConditions))
	}
	names := map[string]bool{}
	for i, c := range conditions {
		errs = append(errs, validateCondition(c, cel, at.Index(i))...)
		if names[c.Name] && c.Name != "" {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), c.Name))
		}
		names[c.Name] = true
	}
	return errs
}

func validateCondition(c admissionregistrationv1.MatchCondition, cel conditionCompiler, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(c.Expression) == "" {
		errs = append(errs, field.Required(at.Child("expression"), ""))
	} else if err := cel(c.Expression); err != nil {
		errs = append(errs, field.Invalid(at.Child("expression"), c.Expression, err.Error()))
	}
	if c.Name == "" {
		return append(errs, field.Required(at.Child("name"), ""))
	}
	for _, reason := range utilvalidation.IsQualifiedName(c.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), c.Name, reason))
	}
	return errs
}

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
