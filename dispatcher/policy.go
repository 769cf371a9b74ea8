// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
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
	switch {
	case err == nil && resp.Allowed:
		o.Result = Allowed
	case err == nil:
		o.Result, o.Code = Denied, resp.Code
	default:
		a.judgeError(&o, err)
	}
	o.Softened = inv.webhook.Mode == registry.Warn && o.Denies()
	return o
}

// judgeError is judge where there is no verdict.
func (a *admission) judgeError(o *Outcome, err error) {
	var (
		refusal   *Refusal
		answerErr *codec.AnswerError
		callErr   *webhook.CallError
	)
	switch {
	case errors.As(err, &refusal):
		o.Result, o.Cause, o.Code = Refused, refusal.Cause, refusal.Code
	case errors.As(err, &callErr):
		o.Result, o.FailOpenRule = a.failurePolicy(o.Webhook)
		o.Cause, o.Code = callErr.Cause, callErr.Cause.Code()
	case errors.As(err, &answerErr) && answerErr.Denies:
		o.Result, o.Cause, o.Code = Refused, webhook.BadAnswer, webhook.BadAnswer.Code()
	default:
		// Caller's contract leaves nothing else; an answer that nobody understands
		// is no answer.
		o.Result, o.FailOpenRule = a.failurePolicy(o.Webhook)
		o.Cause, o.Code = webhook.BadAnswer, webhook.BadAnswer.Code()
	}
}

// failurePolicy decides what a CallError of w means for this request.
func (a *admission) failurePolicy(w *registry.Webhook) (r Result, rule string) {
	if w.FailurePolicy == registry.Ignore {
		return FailedOpen, ""
	}
	if rule, ok := a.Cluster.FailOpen.Match(a.Review); ok {
		return FailedOpen, rule
	}
	return Failed, ""
}
