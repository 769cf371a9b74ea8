// SPDX-License-Identifier: Apache-2.0

package history

import "fmt"

// Rule names what was broken.
type Rule string

// The rules.
const (
	// LostCall: every call is answered with HTTP 200.
	LostCall Rule = "lost-call"
	// ForeignUID: the answer has the uid of the request.
	ForeignUID Rule = "foreign-uid"
	// LateAnswer: the answer is there before the deadline.
	LateAnswer Rule = "late-answer"
	// Bypass: exempt traffic is allowed and reaches no webhook, other traffic is
	// never said to be exempt.
	Bypass Rule = "bypass"

	// WrongAllow: no denial becomes an allow, nobody under Fail is left unasked.
	WrongAllow Rule = "wrong-allow"
	// SilentFailOpen: a failure that is ignored is announced, by a warning and by
	// an audit annotation.
	SilentFailOpen Rule = "silent-fail-open"
	// FailurePolicy: Fail fails closed, Ignore fails open.
	FailurePolicy Rule = "failure-policy"
	// WrongDeny: somebody who may say no has said so.
	WrongDeny Rule = "wrong-deny"
	// FalseFailure: a failure is excused by a fault in force.
	FalseFailure Rule = "false-failure"
	// BreakerOpened: a breaker opens for failures only, never for denials.
	BreakerOpened Rule = "breaker-opened"
	// ModeEnforced: Warn and Shadow never deny.
	ModeEnforced Rule = "mode-enforced"
	// ForeignAnswer: what a webhook is quoted with is what it said about this uid.
	ForeignAnswer Rule = "foreign-answer"
	// Attribution: the message names exactly those who said no.
	Attribution Rule = "attribution"
	// LostDenial: a denial that came in time is in the message.
	LostDenial Rule = "lost-denial"
	// FirstCode: lines are in order, and the code is that of the first.
	FirstCode Rule = "first-code"
	// Patch: it is the patches of those that took part, in order.
	Patch Rule = "patch"
	// ChainBroken: nobody is called after a mutating webhook's denial.
	ChainBroken Rule = "chain-broken"
	// OneSnapshot: one Snapshot of the time explains the answer.
	OneSnapshot Rule = "one-snapshot"

	// ForeignBody: a webhook sees the body of the uid that it is asked about.
	ForeignBody Rule = "foreign-body"
	// ForeignCluster: a webhook is told the caller's cluster.
	ForeignCluster Rule = "foreign-cluster"
	// Misrouted: only webhooks that want the call are asked.
	Misrouted Rule = "misrouted"
	// AskedTwice: a webhook with side effects is asked at most once, and not on a
	// dry run that it does not support.
	AskedTwice Rule = "asked-twice"
	// ExtraAttempts: hedges and retries keep to their budget.
	ExtraAttempts Rule = "extra-attempts"
	// AfterAnswer: nobody is asked after the answer.
	AfterAnswer Rule = "after-answer"
	// FailureShare: a fault makes no more calls fail than it may.
	FailureShare Rule = "failure-share"
)

// Finding is one broken rule.
type Finding struct {
	Rule Rule
	UID  string // of the call; empty where it is about several
	Text string
}

// String returns the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Rule, f.UID, f.Text) }

func (c *Call) finding(r Rule, format string, args ...any) Finding {
	return Finding{Rule: r, UID: c.UID, Text: fmt.Sprintf(format, args...)}
}
