// SPDX-License-Identifier: Apache-2.0

// Package match answers "does this webhook want this review?" exactly as
// kube-apiserver does. It does no I/O and starts nothing; conditions on a large object wait
// for a turn, until the deadline of the admission.
package match

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Spec is what one webhook of a configuration wants, or one policy with a binding,
// defaulted and validated.
type Spec struct {
	Rules             []admissionregistrationv1.RuleWithOperations
	MatchPolicy       admissionregistrationv1.MatchPolicyType
	FailurePolicy     admissionregistrationv1.FailurePolicyType // decides what a failing matchCondition means
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	MatchConditions   []admissionregistrationv1.MatchCondition

	// What follows only policies say.

	Names   [][]string                                        // resourceNames of each of the Rules; none: any name
	Exclude []admissionregistrationv1.NamedRuleWithOperations // what is not wanted although Rules select it
	// Narrower, of a binding, must want the review too. It has no MatchConditions. Without
	// Rules it wants every resource.
	Narrower *Spec
	// ConditionsAnswer: under failurePolicy Fail a matchCondition that fails is for the
	// Hook to answer, which evaluates it again.
	ConditionsAnswer bool
}

// Matcher is a compiled Spec, read-only and safe for concurrent use.
type Matcher struct {
	rules      []rule
	exact      bool   // matchPolicy: Exact
	form       string // of all rules; "" if they differ
	namespaces selector
	objects    selector
	conditions conditions
	exclude    []rule
	narrower   *Matcher
}

// Compile compiles a validated Spec. The conditions come from cel, which caches
// them across reloads. The error joins everything that is wrong.
func Compile(spec Spec, cel *celenv.Compiler) (*Matcher, error) {
	m := &Matcher{exact: spec.MatchPolicy == admissionregistrationv1.Exact}
	var errs [4]error
	m.namespaces, errs[0] = compileSelector("namespaceSelector", spec.NamespaceSelector)
	m.objects, errs[1] = compileSelector("objectSelector", spec.ObjectSelector)
	m.conditions, errs[2] = compileConditions(spec, cel)
	if spec.Narrower != nil {
		m.narrower, errs[3] = Compile(*spec.Narrower, cel)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range spec.Rules {
		var names []string
		if i < len(spec.Names) {
			names = spec.Names[i]
		}
		m.rules = append(m.rules, compileRule(&spec.Rules[i], names, m.exact))
	}
	for i := range spec.Exclude {
		m.exclude = append(m.exclude, compileRule(&spec.Exclude[i].RuleWithOperations, spec.Exclude[i].ResourceNames, m.exact))
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

// Authorizes returns the indexes of the matchConditions that may ask the cluster's
// authorizer.
func (m *Matcher) Authorizes() []int { return m.conditions.asks }

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
	if reason := m.excludes(s.Review); reason != Matched {
		return Decision{Reason: reason, Rule: c.rule}
	}
	d := m.judge(s, c.selected)
	d.Rule = c.rule
	return d
}

// judge decides for a review that a rule selects, or would in another form.
func (m *Matcher) judge(s *Subject, selected bool) Decision {
	if !m.objectFits(s) || m.narrower != nil && !m.narrower.objectFits(s) {
		return Decision{Reason: ObjectSelector}
	}
	for _, each := range [...]*Matcher{m, m.narrower} {
		if each == nil {
			continue
		}
		switch fits, err := each.namespaceFits(s); {
		case errors.Is(err, ErrNotLookedUp):
			return Decision{Reason: NamespaceNotLookedUp, Err: err}
		case err != nil:
			return Decision{Reason: NamespaceUnknown, Err: err}
		case !fits:
			return Decision{Reason: NamespaceSelector}
		}
	}
	if !selected {
		return Decision{Reason: NotConvertible, Err: errNotConvertible}
	}
	return m.conditions.evaluate(s)
}

// The API server may have converted what the user sent (requestResource) to what
// the review holds (resource), because it found the resource as sent in no rule of
// the cluster's registration of us. matchPolicy says which requests a webhook
// wants; what it is sent must be in a group and version that it lists. The first
// row that fits decides:
//
//	policy       requestResource           resource   decision
//	Exact        in no rule                           NoRule
//	Exact        in a rule                 in a rule  selected
//	Exact        in a rule                 in none    NotConvertible
//	Equivalent                             in a rule  selected
//	Equivalent   in a rule, or in one in another      NotConvertible
//	             version or an equivalent group;
//	             or resource is
//	Equivalent                                        NoRule
//
// kube-apiserver would convert for every webhook by itself. We cannot: a webhook
// that lists other forms only is NotConvertible, and never skipped silently.
type selection struct {
	rule     int  // index of the first rule that fits, -1 if none does
	selected bool // false: it fits but for the form
}

func (m *Matcher) firstRule(r *codec.Review) selection {
	var (
		asSent = requestSent(r)
		asIs   = requestMade(r)
		sent   = -1
	)
	if m.exact {
		if sent = m.indexOf(asSent, (*rule).selects); sent < 0 {
			return selection{-1, false}
		}
	}
	if i := m.indexOf(asIs, (*rule).selects); i >= 0 {
		return selection{i, true}
	}
	if m.exact {
		return selection{sent, false}
	}
	if i := m.indexOf(asIs, (*rule).selectsEquivalent); i >= 0 {
		return selection{i, false}
	}
	return selection{m.indexOf(asSent, (*rule).selectsEquivalent), false}
}

func (m *Matcher) indexOf(q request, selects func(*rule, request) bool) int {
	for i := range m.rules {
		if selects(&m.rules[i], q) {
			return i
		}
	}
	return -1
}

var errNotConvertible = errors.New("the webhook lists this resource only in other versions or groups, and objects cannot be converted here; " +
	"apply what \"dispatcher registration\" prints for the cluster, then the API server converts")

// Reason is why a webhook is not called. The set is closed.
type Reason uint8

// The reasons. Matched is the zero Reason: the webhook wants the review.
const (
	Matched Reason = iota
	NoRule
	NamespaceSelector
	ObjectSelector
	MatchCondition
	// ConditionError: a matchCondition failed under failurePolicy Ignore; skipped, visibly.
	ConditionError
	// ConditionRefusal: a matchCondition failed under failurePolicy Fail: Refusal 403.
	ConditionRefusal
	// NamespaceUnknown: the selector needs labels of a namespace that the source does not know: Refusal 404.
	NamespaceUnknown
	// NamespaceNotLookedUp: the selector needs labels that the cluster must be asked for: look
	// them up, set them in the Subject, and match again.
	NamespaceNotLookedUp
	// NotConvertible: only other versions of the resource are listed: CallError.
	NotConvertible
	// NoTimeLeft: the deadline came before the matchConditions were evaluated: CallError.
	NoTimeLeft
	// ExcludeRule: an excludeResourceRule of a policy or of its binding selects the review.
	ExcludeRule
	// BindingRule: no resourceRule of the policy's binding selects the review.
	BindingRule
	// AuthorizerNotAsked: a matchCondition needs an answer of the cluster's authorizer: ask
	// (hook.View.Answer), and match again.
	AuthorizerNotAsked

	// Reasons is how many there are, Matched included.
	Reasons = iota
)

var reasonNames = [Reasons]string{
	"Matched", "NoRule", "NamespaceSelector", "ObjectSelector", "MatchCondition",
	"ConditionError", "ConditionRefusal", "NamespaceUnknown", "NamespaceNotLookedUp", "NotConvertible", "NoTimeLeft",
	"ExcludeRule", "BindingRule", "AuthorizerNotAsked",
}

// String returns the reason as logs and explanations spell it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "Unknown"
}

// Decision is a matcher's answer.
type Decision struct {
	Reason Reason
	// Rule is the index of the rule that selected the review, or would have in
	// another version (NotConvertible); -1 if none did.
	Rule int
	// Condition is the name of the matchCondition that decided, if one did. With Matched it
	// is one that failed, which the Hook is to answer for.
	Condition string
	// Err explains ConditionError, ConditionRefusal, NamespaceUnknown,
	// NamespaceNotLookedUp, AuthorizerNotAsked, NotConvertible, NoTimeLeft.
	Err error
	// Unanswered is what AuthorizerNotAsked needs.
	Unanswered *celenv.Unanswered
}
