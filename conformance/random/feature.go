// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Features returns the names of all features that Cases and admissions are counted
// by: what a run must have reached to be worth anything.
func Features() []string {
	names := []string{
		"dry run", "generateName", "user with extra", "name of a configuration out of order",
		"object without labels", "object with labels", "compatibility: APIServer", "v1beta1 configuration",
		"webhook with matchConditions", "webhook with several rules", "namespace unknown", "registered as printed", "registered for everything",
	}
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
		names = append(names, "operation: "+operation, "rule for operation: "+operation)
	}
	for _, k := range kinds {
		names = append(names, "resource: "+k.resource)
	}
	for _, sub := range []string{"status", "scale", "exec", "finalize"} {
		names = append(names, "subresource: "+sub)
	}
	for _, resource := range []string{"*", "*/*", "pods/*", "*/scale", "*/status", "plain", "plain/sub"} {
		names = append(names, "rule for resource: "+resource)
	}
	for _, scope := range []string{"*", "Cluster", "Namespaced"} {
		names = append(names, "rule for scope: "+scope)
	}
	for _, selector := range []string{"namespaceSelector", "objectSelector"} {
		names = append(names, selector+": matchLabels")
		for _, operator := range []string{"In", "NotIn", "Exists", "DoesNotExist"} {
			names = append(names, selector+": "+operator)
		}
	}
	names = append(names, policies...)
	for _, form := range conditionForms {
		names = append(names, "condition: "+form)
	}
	for _, op := range patchOperations {
		names = append(names, "patch: "+op)
	}
	return names
}

var policies = []string{
	"failurePolicy: Fail", "failurePolicy: Ignore", "matchPolicy: Exact", "matchPolicy: Equivalent",
	"reinvocationPolicy: Never", "reinvocationPolicy: IfNeeded", "sideEffects: None", "sideEffects: NoneOnDryRun",
	"sideEffects: Some", "sideEffects: Unknown", "reviews: v1", "reviews: v1beta1",
}

// conditionForms are what the dispatcher evaluates without CEL.
var conditionForms = []string{
	"!", "&&", "||", "==", "!=", " in [", " in request.", " in object.", ".startsWith(", ".endsWith(", ".contains(", ".matches(", "has(", "size(",
	"request.dryRun", "oldObject.metadata", "object.metadata.labels", "object.metadata.annotations", "object == null", "object != null",
}

var patchOperations = []string{"add", "remove", "replace", "move", "copy", "test"}

// FeaturesOf returns the features of the admission at index, and with the first
// one those of the Case.
func (c *Case) FeaturesOf(index int) []string {
	names := c.Admissions[index].features(c)
	if index > 0 {
		return names
	}
	if c.Registered {
		names = append(names, "registered as printed")
	} else {
		names = append(names, "registered for everything")
	}
	if c.Compatibility == "APIServer" {
		names = append(names, "compatibility: APIServer")
	}
	for _, list := range [][]Configuration{c.Mutating, c.Validating} {
		if !slices.IsSortedFunc(list, func(a, b Configuration) int { return strings.Compare(a.Name, b.Name) }) {
			names = append(names, "name of a configuration out of order")
		}
		for i := range list {
			for j := range list[i].Webhooks {
				names = append(names, list[i].Webhooks[j].features()...)
			}
		}
	}
	return names
}

func (a *Admission) features(c *Case) []string {
	names := []string{"operation: " + string(a.Operation), "resource: " + a.Resource.Resource}
	if a.Subresource != "" {
		names = append(names, "subresource: "+a.Subresource)
	}
	add := func(name string, holds bool) {
		if holds {
			names = append(names, name)
		}
	}
	add("dry run", a.DryRun)
	add("generateName", a.Name == "")
	add("user with extra", len(a.User.Extra) > 0)
	add("object with labels", strings.Contains(string(a.Object), `"labels"`))
	add("object without labels", a.Object != nil && !strings.Contains(string(a.Object), `"labels"`))
	_, known := c.Namespaces[a.Namespace]
	add("namespace unknown", a.Namespace != "" && !known)
	return names
}

func (w *Webhook) features() []string {
	names := []string{
		"failurePolicy: " + string(*w.FailurePolicy),
		"matchPolicy: " + string(*w.MatchPolicy),
		"reinvocationPolicy: " + string(*w.ReinvocationPolicy),
		"sideEffects: " + string(*w.SideEffects),
	}
	add := func(name string, holds bool) {
		if holds {
			names = append(names, name)
		}
	}
	add("v1beta1 configuration", w.needsBeta())
	add("webhook with matchConditions", len(w.MatchConditions) > 0)
	add("webhook with several rules", len(w.Rules) > 1)
	for _, version := range w.AdmissionReviewVersions[:1] {
		add("reviews: "+version, version != unknownVersion)
	}
	for _, r := range w.Rules {
		names = append(names, ruleFeatures(r)...)
	}
	names = append(names, selectorFeatures("namespaceSelector", w.NamespaceSelector)...)
	names = append(names, selectorFeatures("objectSelector", w.ObjectSelector)...)
	for _, form := range conditionForms {
		add("condition: "+form, slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return strings.Contains(c.Expression, form)
		}))
	}
	for _, op := range patchOperations {
		add("patch: "+op, strings.Contains(string(w.Script.Patch), fmt.Sprintf(`"op":%q`, op)))
	}
	return names
}

// needsBeta reports whether only a v1beta1 configuration can hold the webhook.
func (w *Webhook) needsBeta() bool {
	return *w.SideEffects == admissionregistrationv1.SideEffectClassSome || *w.SideEffects == admissionregistrationv1.SideEffectClassUnknown
}

func ruleFeatures(r admissionregistrationv1.RuleWithOperations) []string {
	names := []string{"rule for scope: " + string(*r.Scope)}
	for _, operation := range r.Operations {
		if operation != admissionregistrationv1.OperationAll {
			names = append(names, "rule for operation: "+string(operation))
		}
	}
	for _, resource := range r.Resources {
		switch {
		case slices.Contains([]string{"*", "*/*", "pods/*", "*/scale", "*/status"}, resource):
			names = append(names, "rule for resource: "+resource)
		case strings.Contains(resource, "/"):
			names = append(names, "rule for resource: plain/sub")
		default:
			names = append(names, "rule for resource: plain")
		}
	}
	return names
}

func selectorFeatures(field string, s *metav1.LabelSelector) []string {
	var names []string
	if len(s.MatchLabels) > 0 {
		names = append(names, field+": matchLabels")
	}
	for _, r := range s.MatchExpressions {
		names = append(names, field+": "+string(r.Operator))
	}
	return names
}

// StoredVersion is the version of admissionregistration.k8s.io that holds c.
func (c *Configuration) StoredVersion() string {
	if slices.ContainsFunc(c.Webhooks, func(w Webhook) bool { return w.needsBeta() }) {
		return "admissionregistration.k8s.io/v1beta1"
	}
	return "admissionregistration.k8s.io/v1"
}
