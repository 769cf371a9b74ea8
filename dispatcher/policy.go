// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// judge turns what a webhook answered, or why it did not, into an Outcome. This
// is the only place where the failure policy, failOpen rules and the mode speak.
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
		// Caller's contract leaves nothing else; an answer that nobody understands
		// is no answer.
		o.Result, o.Cause, o.Code = Failed, hook.BadAnswer, hook.BadAnswer.Code()
	}
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
