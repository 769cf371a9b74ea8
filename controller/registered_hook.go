// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registration"
)

// configuration is one of the two objects by which a cluster calls the dispatcher, in the
// form in which two of them are compared: what the API server defaults is filled in, and
// what has no order is sorted.
type configuration struct {
	hooks []*hook
}

// hook is a webhook of it.
type hook struct {
	name string
	// url is where it is called: without a path secret, and of a Service the path alone.
	url string
	// private says that the URL has a path secret, or is that of a Service of the cluster:
	// the controller knows neither of them, so it does not change the object.
	private    bool
	service    bool
	authority  []byte
	rules      []string // each as one line
	fields     [6]string
	namespaces []requirement
	objects    []requirement
	conditions map[string]string // expressions by name
}

// The places of fields.
const (
	failurePolicy = iota
	matchPolicy
	sideEffects
	timeoutSeconds
	reviewVersions
	reinvocation
)

var fieldNames = [...]string{
	failurePolicy: "failurePolicy", matchPolicy: "matchPolicy", sideEffects: "sideEffects", timeoutSeconds: "timeoutSeconds",
	reviewVersions: "admissionReviewVersions", reinvocation: "reinvocationPolicy",
}

// requirement is what a label selector requires of one label, as one line.
type requirement struct {
	key, operator string
	values        []string
}

func (r requirement) String() string {
	if len(r.values) == 0 {
		return r.key + " " + r.operator
	}
	return fmt.Sprintf("%s %s (%s)", r.key, r.operator, strings.Join(r.values, ", "))
}

// read reads a configuration of either kind.
func read(document []byte) (*configuration, error) {
	// A ValidatingWebhook has the fields of a MutatingWebhook but one.
	var o admissionregistrationv1.MutatingWebhookConfiguration
	if err := json.Unmarshal(document, &o); err != nil {
		return nil, err
	}
	c := &configuration{}
	for i := range o.Webhooks {
		c.hooks = append(c.hooks, hookOf(&o.Webhooks[i]))
	}
	return c, nil
}

func hookOf(w *admissionregistrationv1.MutatingWebhook) *hook {
	h := &hook{
		name: w.Name, authority: bytes.TrimSpace(w.ClientConfig.CABundle),
		namespaces: requirementsOf(w.NamespaceSelector), objects: requirementsOf(w.ObjectSelector), conditions: map[string]string{},
	}
	h.url, h.private = registration.WithoutPathSecret(valueOf(w.ClientConfig.URL, ""))
	if s := w.ClientConfig.Service; s != nil {
		h.url, _ = registration.WithoutPathSecret(valueOf(s.Path, ""))
		h.private, h.service = true, true
	}
	h.fields = [...]string{
		failurePolicy:  string(valueOf(w.FailurePolicy, admissionregistrationv1.Fail)),
		matchPolicy:    string(valueOf(w.MatchPolicy, admissionregistrationv1.Equivalent)),
		sideEffects:    string(valueOf(w.SideEffects, "")),
		timeoutSeconds: fmt.Sprint(valueOf(w.TimeoutSeconds, 10)),
		reviewVersions: strings.Join(w.AdmissionReviewVersions, ", "),
		reinvocation:   string(valueOf(w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)),
	}
	for i := range w.Rules {
		h.rules = append(h.rules, ruleText(&w.Rules[i]))
	}
	slices.Sort(h.rules)
	h.rules = slices.Compact(h.rules)
	for _, c := range w.MatchConditions {
		h.conditions[c.Name] = c.Expression
	}
	return h
}

func valueOf[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// ruleText is a rule as one line: "CREATE, UPDATE of deployments, pods in apps/v1".
func ruleText(r *admissionregistrationv1.RuleWithOperations) string {
	var operations []string
	for _, o := range r.Operations {
		operations = append(operations, string(o))
	}
	list := func(of []string) string {
		of = slices.Clone(of)
		slices.Sort(of)
		return strings.Join(slices.Compact(of), ", ")
	}
	text := fmt.Sprintf("%s of %s in %s/%s", list(operations), list(r.Resources), list(r.APIGroups), list(r.APIVersions))
	if s := valueOf(r.Scope, admissionregistrationv1.AllScopes); s != admissionregistrationv1.AllScopes {
		text += " (" + string(s) + ")"
	}
	return text
}

func requirementsOf(s *metav1.LabelSelector) (all []requirement) {
	if s == nil {
		return nil
	}
	for key, value := range s.MatchLabels {
		all = append(all, requirement{key, string(metav1.LabelSelectorOpIn), []string{value}})
	}
	for _, e := range s.MatchExpressions {
		values := slices.Clone(e.Values)
		slices.Sort(values)
		all = append(all, requirement{e.Key, string(e.Operator), slices.Compact(values)})
	}
	slices.SortFunc(all, func(a, b requirement) int { return cmp.Compare(a.String(), b.String()) })
	return slices.CompactFunc(all, requirement.equal)
}

func (r requirement) equal(other requirement) bool { return r.String() == other.String() }
