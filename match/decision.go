// SPDX-License-Identifier: Apache-2.0

package match

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

	// Reasons is how many there are, Matched included.
	Reasons = iota
)

var reasonNames = [Reasons]string{
	"Matched", "NoRule", "NamespaceSelector", "ObjectSelector", "MatchCondition",
	"ConditionError", "ConditionRefusal", "NamespaceUnknown", "NamespaceNotLookedUp", "NotConvertible", "NoTimeLeft",
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
	// Condition is the name of the matchCondition that decided, if one did.
	Condition string
	// Err explains ConditionError, ConditionRefusal, NamespaceUnknown,
	// NamespaceNotLookedUp, NotConvertible, NoTimeLeft.
	Err error
}
