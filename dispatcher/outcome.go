// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

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

// soften is where the mode Warn speaks: what would deny is a warning. A CallError
// that does not block has failed open, whatever kept it from blocking.
func (o *Outcome) soften() {
	switch o.Result {
	case Denied, Refused:
		o.Result, o.Softened = Softened, true
	case Failed:
		o.Result, o.Softened = FailedOpen, true
	}
}
