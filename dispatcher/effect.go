// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"github.com/admission-dispatcher/dispatcher/hook"
)

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
