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
	exact      bool   // matchPolicy: Exact
	form       string // of all rules; "" if they differ
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
		r := compileRule(&spec.Rules[i])
		if !m.exact {
			r.equivalents = r.equivalentPatterns()
		}
		m.rules = append(m.rules, r)
	}
	m.form = uniformForm(m.rules)
	return m, nil
}

// FailingClosed returns m as if its Spec had failurePolicy Fail: a matchCondition
// that fails does not skip the webhook.
func (m *Matcher) FailingClosed() *Matcher {
	closed := *m
	closed.conditions.ignore = false
	return &closed
}

// CompileError is one thing that is wrong with a Spec.
type CompileError struct {
	Field string // path below the webhook, such as matchConditions[2].expression
	Value string // what stands there, where it helps
	Err   error
}

// Error returns the field and the reason.
func (e *CompileError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason alone.
func (e *CompileError) Unwrap() error { return e.Err }

// Match decides. As in kube-apiserver a webhook that would not be called anyway
// never makes an undecidable match: rules and objectSelector are asked before a
// namespace can be unknown, and selectors before a version can be missing.
func (m *Matcher) Match(s *Subject) Decision {
	c := m.firstRule(s.Review)
	if c.rule < 0 {
		return Decision{Reason: NoRule, Rule: -1}
	}
	d := m.judge(s, c.selected)
	d.Rule = c.rule
	return d
}

// judge decides for a review that a rule selects, or would in another form.
func (m *Matcher) judge(s *Subject, selected bool) Decision {
	if !m.objectFits(s) {
		return Decision{Reason: ObjectSelector}
	}
	switch fits, err := m.namespaceFits(s); {
	case errors.Is(err, ErrNotLookedUp):
		return Decision{Reason: NamespaceNotLookedUp, Err: err}
	case err != nil:
		return Decision{Reason: NamespaceUnknown, Err: err}
	case !fits:
		return Decision{Reason: NamespaceSelector}
	}
	if !selected {
		return Decision{Reason: NotConvertible, Err: errNotConvertible}
	}
	return m.conditions.evaluate(s)
}
