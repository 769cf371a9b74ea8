// SPDX-License-Identifier: Apache-2.0

// Package match answers "does this webhook want this review?" exactly as
// kube-apiserver does. It is pure: no I/O, no clock, no goroutine.
package match

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Spec is what one webhook of a configuration wants, defaulted.
type Spec struct {
	Rules             []admissionregistrationv1.RuleWithOperations
	MatchPolicy       admissionregistrationv1.MatchPolicyType
	FailurePolicy     admissionregistrationv1.FailurePolicyType // decides what a failing matchCondition means
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	MatchConditions   []admissionregistrationv1.MatchCondition
}

// Matcher is a compiled Spec, read-only and safe for concurrent use.
type Matcher struct{}

// Compile compiles a validated Spec. The conditions come from cel, which caches
// them across reloads.
func Compile(spec Spec, cel *celenv.Compiler) (*Matcher, error) { panic("stub") }

// Subject is what a webhook is matched against. It is used by one goroutine.
type Subject struct {
	Review *codec.Review
	// Object is the object as mutated so far; &Review.Object where nothing was.
	Object *codec.Object
	// ClusterName and ClusterLabels are the cluster variable of matchConditions.
	ClusterName   string
	ClusterLabels map[string]string
	Namespaces    Namespaces // nil: only kubernetes.io/metadata.name is known
}

// Namespaces tells the labels of a cluster's namespaces. ok is false for a
// namespace that the source does not know.
type Namespaces interface {
	NamespaceLabels(name string) (labels map[string]string, ok bool)
}

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
	// NotConvertible: only other versions of the resource are listed: CallError.
	NotConvertible
)

// Decision is a matcher's answer.
type Decision struct {
	Reason Reason
	// Rule is the index of the rule that selected the review, -1 if none did.
	Rule int
	// Condition is the name of the matchCondition that decided, if one did.
	Condition string
	// Err explains ConditionError, ConditionRefusal, NamespaceUnknown, NotConvertible.
	Err error
}

// Match decides. The order of evaluation does not show in the result.
func (m *Matcher) Match(s *Subject) Decision { panic("stub") }

// Index finds, for a review, the few of many matchers whose rules can select it.
type Index struct{}

// NewIndex indexes matchers by their position.
func NewIndex(matchers []*Matcher) *Index { panic("stub") }

// Candidates appends to dst, in ascending order and without duplicates, the
// positions of all matchers that do not answer NoRule to r, and perhaps of a few
// that do.
func (ix *Index) Candidates(dst []int, r *codec.Review) []int { panic("stub") }

// IsExempt reports whether the review's resource is never sent to webhooks: the
// admissionregistration kinds and the auth review resources that kube-apiserver
// 1.37 excludes.
func IsExempt(r *codec.Review) bool { panic("stub") }
