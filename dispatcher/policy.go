// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// judge turns what a webhook answered, or why it did not, into an Outcome. What the
// failure policy, failOpen rules and the mode make of it is said here alone.
func (a *admission) judge(inv *invocation, resp codec.Response, err error, elapsed time.Duration) Outcome {
	o := Outcome{
		Webhook:  inv.webhook,
		Position: inv.position,
		Round:    inv.round,
		Response: resp,
		Err:      err,
		Elapsed:  elapsed,
	}
	o.classify()
	if o.Result == Failed {
		o.Result, o.FailOpenRule = a.failurePolicy(inv.webhook)
	}
	if inv.webhook.Mode == chain.Warn {
		o.soften()
	}
	return o
}

// failurePolicy decides what a CallError of w means for this request. A webhook
// that joins when it is ready blocks nothing before.
func (a *admission) failurePolicy(w *chain.Entry) (r Result, rule string) {
	if w.FailurePolicy == chain.Ignore || w.Pending != nil {
		return FailedOpen, ""
	}
	if rule, ok := a.Cluster.FailOpen.Match(a.Review); ok {
		return FailedOpen, rule
	}
	return Failed, ""
}

// Result is what an invocation came to. The set is closed.
type Result uint8

// The results. Denied, Refused and Failed deny the admission.
const (
	// Allowed: the webhook said yes.
	Allowed Result = iota
	// Denied: the webhook said no (a rejection).
	Denied
	// Refused: the dispatcher must say no whatever the failure policy (a Refusal).
	Refused
	// Failed: there was no usable answer, and the failure policy is Fail.
	Failed
	// FailedOpen: there was no usable answer, and the failure policy, a failOpen
	// rule or the mode Warn has it ignored, visibly.
	FailedOpen
	// Softened: the mode Warn made a warning of a rejection or a Refusal.
	Softened
	// Skipped: not called for a reason that must be seen: a matchCondition that
	// failed under Ignore, a dry run in a mode that never denies.
	Skipped
	// Abandoned: a denial was answered before this webhook was heard.
	Abandoned

	// Results is how many there are.
	Results = iota
)

// String returns the result in the spelling of logs and metrics.
func (r Result) String() string {
	switch r {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case FailedOpen:
		return "failed_open"
	case Softened:
		return "softened"
	case Skipped:
		return "skipped"
	case Abandoned:
		return "abandoned"
	}
	return "unknown"
}

// Outcome is what one invocation came to.
type Outcome struct {
	Webhook  *chain.Entry
	Position int // in the chain
	Round    int // 1 for a reinvocation
	Result   Result

	// Softened: but for the mode Warn this would deny.
	Softened bool
	// Response is the webhook's answer where there is one.
	Response codec.Response
	// Cause and Err say why, where that is not the webhook's own decision.
	Cause hook.Cause
	Err   error
	// Code is the status code of a denial.
	Code int32
	// FailOpenRule is the failOpen rule that kept a CallError from blocking; empty
	// where that was the failure policy.
	FailOpenRule string
	// Operations is the number of patch operations that were applied.
	Operations int
	Elapsed    time.Duration
}

// classify says what the answer, or the lack of one, is by itself: a CallError is
// Failed, until its failure policy has spoken.
func (o *Outcome) classify() {
	switch {
	case o.Err != nil:
		o.classifyError()
	case o.Response.Allowed:
		o.Result = Allowed
	default:
		o.Result, o.Code = Denied, o.Response.Code
	}
}

func (o *Outcome) classifyError() {
	var (
		refusal   *hook.Refusal
		answerErr *codec.AnswerError
		callErr   *hook.CallError
	)
	switch {
	case errors.As(o.Err, &refusal):
		o.Result, o.Cause, o.Code = Refused, refusal.Cause, refusal.Code
	case errors.As(o.Err, &callErr):
		o.Result, o.Cause, o.Code = Failed, callErr.Cause, callErr.Cause.Code()
	case errors.As(o.Err, &answerErr) && answerErr.Denies:
		o.Result, o.Cause, o.Code = Refused, hook.BadAnswer, hook.BadAnswer.Code()
	default:
		// The contract of a Receiver leaves nothing else; an answer that nobody understands
		// is no answer.
		o.Result, o.Cause, o.Code = Failed, hook.BadAnswer, hook.BadAnswer.Code()
	}
}

// soften applies the mode Warn: what would deny is a warning, and a dry run that the
// webhook does not support a visible skip. A CallError that does not block has failed
// open, whatever kept it from blocking.
func (o *Outcome) soften() {
	switch {
	case o.Result == Refused && o.Cause == hook.DryRun:
		o.Result = Skipped
	case o.Result == Denied, o.Result == Refused:
		o.Result, o.Softened = Softened, true
	case o.Result == Failed:
		o.Result, o.Softened = FailedOpen, true
	}
}

// What an Outcome did to its admission is decided here, once for answers, metrics,
// spans, logs and the status. The questions are independent of each other: a call
// that was shed may have denied, or failed open.

// Denies reports whether the Outcome denies the admission.
func (o *Outcome) Denies() bool {
	return o.Result == Denied || o.Result == Refused || o.Result == Failed
}

// FailsOpen reports whether the webhook should have had its say, did not have it,
// and did not block: a CallError that is ignored, or a matchCondition that failed
// under Ignore. A dry run that a webhook in mode Warn does not support is neither.
func (o *Outcome) FailsOpen() bool {
	return o.Result == FailedOpen || o.Result == Skipped && o.Cause == hook.MatchError
}

// Shed reports that there was no place for the call: among the admissions for which
// webhooks are called, or among the calls of the webhook's endpoint.
func (o *Outcome) Shed() bool { return o.Cause == hook.Shed }

// Timed reports whether Elapsed says how long the webhook took. It does not where
// the webhook was not asked, or was given up on while it had time left.
func (o *Outcome) Timed() bool {
	switch o.Result {
	case Skipped, Abandoned:
		return false
	}
	switch o.Cause {
	case hook.NoTimeLeft, hook.BreakerOpen, hook.NotConvertible, hook.Shed, hook.Pending, hook.MatchError, hook.DryRun:
		return false
	}
	return true
}
