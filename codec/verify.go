// SPDX-License-Identifier: Apache-2.0

package codec

// Compatibility says how strictly an answer is read.
type Compatibility uint8

const (
	// Strict refuses what different JSON readers could read differently.
	Strict Compatibility = iota
	// APIServer reads an answer as kube-apiserver does: the rows marked + in
	// docs/semantics.md do not apply.
	APIServer
)

// Expectation is what an answer must fit to be one to the call at hand.
type Expectation struct {
	UID      []byte // borrowed for the duration of the call
	Version  Version
	Mutating bool
	Compat   Compatibility
}

// Verify reads the body of a 200 answer. It fails with an *AnswerError
// (answers.md C1 to C29). The Response is cleaned: codes, texts, warnings and
// annotations are within the limits of one webhook. It borrows nothing from body.
func Verify(body []byte, want Expectation) (Response, error) { panic("stub") }
