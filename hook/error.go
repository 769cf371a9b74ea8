// SPDX-License-Identifier: Apache-2.0

package hook

import "time"

// CallError says that a webhook gave no usable answer. The failure policy
// decides what that means. A defective answer that can be read as a denial is
// not a CallError but a *codec.AnswerError with Denies set.
type CallError struct {
	Cause   Cause
	Elapsed time.Duration // since the call began
	Err     error         // what happened, in words; never an address's secret or body text
	Stack   []byte        // of a panic
}

func (e *CallError) Error() string { return e.Err.Error() }

func (e *CallError) Unwrap() error { return e.Err }
