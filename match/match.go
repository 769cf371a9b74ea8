// SPDX-License-Identifier: Apache-2.0

// Package match answers "does this webhook want this review?" exactly as
// kube-apiserver does. It is pure: no I/O, no clock, no goroutine.
package match

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Spec is what one webhook of a configuration wants, defaulted and validated.
type Spec struct {
	Rules             []admissionregistrationv1.RuleWithOperations
	MatchPolicy       admissionregistrationv1.MatchPolicyType
	FailurePolicy     admissionregistrationv1.FailurePolicyType // decides what a failing matchCondition means
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	MatchConditions   []admissionregistrationv1.MatchCondition
}

// Matcher is a compiled Spec, read-only and safe for concurrent use.
type Matcher struct {
	rules      []rule
	exact      bool // matchPolicy: Exact
	namespaces selector
	objects    selector
	conditions conditions
}

// Compile compiles a validated Spec. The conditions come from cel, which caches
// them across reloads. The error joins everything that is wrong.
func Compile(spec Spec, cel *celenv.Compiler) (*Matcher, error) {
	m := &Matcher{exact: spec.MatchPolicy == admissionregistrationv1.Exact}
	var errs [3]error
	m.namespaces, errs[0] = compileSelector("namespaceSelector", spec.NamespaceSelector)
	m.objects, errs[1] = compileSelector("objectSelector", spec.ObjectSelector)
	m.conditions, errs[2] = compileConditions(spec, cel)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range spec.Rules {
		m.rules = append(m.rules, compileRule(&spec.Rules[i]))
	}
	return m, nil
}

// Match decides. What is cheap is asked first; the order does not show in the
// result, but that a webhook that would not be called anyway never makes an
// undecidable match.
func (m *Matcher) Match(s *Subject) Decision {
	index, found := m.selectRule(s.Review)
	if !found && index < 0 {
		return Decision{Reason: NoRule, Rule: -1}
	}
	if !m.objectFits(s) {
		return Decision{Reason: ObjectSelector, Rule: index}
	}
	if fits, err := m.namespaceFits(s); err != nil {
		return Decision{Reason: NamespaceUnknown, Rule: index, Err: err}
	} else if !fits {
		return Decision{Reason: NamespaceSelector, Rule: index}
	}
	if !found {
		return Decision{Reason: NotConvertible, Rule: index, Err: errNotConvertible}
	}
	d := m.conditions.evaluate(s)
	d.Rule = index
	return d
}

var errNotConvertible = errors.New("the webhook lists this resource only in other versions, and objects cannot be converted here; " +
	"list the version in the cluster's registration of the dispatcher, then the API server converts")
