// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// reviewOf returns an AdmissionReview that the rule of the webhook selects: of its first
// group, version, resource and operation, about an object with the labels that it asks for.
func reviewOf(e *chain.Entry, rule *admissionregistrationv1.RuleWithOperations) map[string]any {
	first := func(list []string, other string) string {
		if len(list) == 0 || list[0] == "*" {
			return other
		}
		return list[0]
	}
	group, version := first(rule.APIGroups, "apps"), first(rule.APIVersions, "v1")
	resource, subresource, _ := strings.Cut(first(rule.Resources, "deployments"), "/")
	if resource == "*" {
		resource = "deployments"
	}
	if subresource == "*" {
		subresource = ""
	}
	operation := "CREATE"
	if len(rule.Operations) > 0 && rule.Operations[0] != admissionregistrationv1.OperationAll {
		operation = string(rule.Operations[0])
	}
	meta := map[string]any{"name": "tried", "labels": required(e.Spec.ObjectSelector)}
	request := map[string]any{
		"uid": "1", "name": "tried", "operation": operation, "subResource": subresource,
		"kind":     map[string]any{"group": group, "version": version, "kind": "Tried"},
		"resource": map[string]any{"group": group, "version": version, "resource": resource},
		"userInfo": map[string]any{"username": "jane"},
	}
	if resource != "namespaces" && (rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope) {
		namespace := namespaceOf(e.Configuration, e.Name)
		meta["namespace"], request["namespace"] = namespace, namespace
	} else if resource == "namespaces" {
		labels := required(e.Spec.NamespaceSelector)
		for key, value := range required(e.Spec.ObjectSelector) {
			labels[key] = value
		}
		meta["labels"] = labels
	}
	object := map[string]any{"apiVersion": strings.TrimPrefix(group+"/"+version, "/"), "kind": "Tried", "metadata": meta}
	if operation != "DELETE" {
		request["object"] = object
	}
	if operation != "CREATE" && operation != "CONNECT" {
		request["oldObject"] = object
	}
	return map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
}
