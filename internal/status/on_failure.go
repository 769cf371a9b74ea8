// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/admission-dispatcher/dispatcher/chain"

// What becomes of an admission when a call fails.
const (
	Deny    = "Deny"
	Allow   = "Allow"   // with a warning
	Nothing = "Nothing" // the webhook never decides
)

// onFailure returns what becomes of an admission when the call fails, which the mode
// decides before the failure policy does.
func onFailure(mode chain.Mode, policy chain.FailurePolicy) string {
	switch {
	case mode == chain.Shadow:
		return Nothing
	case mode == chain.Warn, policy == chain.Ignore:
		return Allow
	}
	return Deny
}

// OnFailureWords says OnFailure in a sentence.
func (w *Webhook) OnFailureWords() string {
	switch {
	case w.OnFailure == Nothing:
		return "nothing comes of it: in mode Shadow it never decides"
	case w.OnFailure == Allow && w.Mode == chain.Warn.String():
		return "the admission is allowed with a warning: in mode Warn it never denies"
	case w.OnFailure == Allow:
		return "the admission is allowed with a warning, without its verdict"
	case w.Retry:
		return "it is called again, and if that fails the admission is denied"
	}
	return "the admission is denied"
}
