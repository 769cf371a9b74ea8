// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strings"
	"unicode"
)

// EnvelopeError says that a body is not an AdmissionReview that can be answered:
// there is no uid to answer to, so the caller gets HTTP 400. It never quotes input
// beyond Member.
type EnvelopeError struct {
	// Pointer is the RFC 6901 pointer of the offending value where there is one, of
	// names that every review has: it may be logged.
	Pointer string
	// Member goes behind Pointer where the value is a member whose key the sender
	// made up, as that of a label. It is the sender's business alone.
	Member string
	Reason string
}

// Error names no key that the sender made up.
func (e *EnvelopeError) Error() string { return e.at(e.Pointer) }

// Detail is Error for the sender, who may read every key.
func (e *EnvelopeError) Detail() string { return e.at(e.Pointer + e.Member) }

func (e *EnvelopeError) at(pointer string) string {
	if pointer == "" {
		return "invalid AdmissionReview: " + e.Reason
	}
	return "invalid AdmissionReview at " + pointer + ": " + e.Reason
}

// RequestError says that there is a uid to answer to, but that the review cannot be
// judged: the caller gets a denial with code 400. Pointer and Member are as those of
// an EnvelopeError.
type RequestError struct {
	Pointer string
	Member  string
	Reason  string
}

// Error names no key that the sender made up.
func (e *RequestError) Error() string { return e.at(e.Pointer) }

// Detail is Error for the sender, who may read every key.
func (e *RequestError) Detail() string { return e.at(e.Pointer + e.Member) }

func (e *RequestError) at(pointer string) string {
	if pointer == "" {
		return "invalid admission request: " + e.Reason
	}
	return "invalid admission request at " + pointer + ": " + e.Reason
}

// AnswerError says that a webhook's answer cannot be used (docs/contract.md). It is
// the failure policy's to decide, unless Denies is set.
type AnswerError struct {
	Reason string
	// Denies is set where the answer is defective but can be read as a denial:
	// a denial is never lost to a formality, so this is a Refusal whatever the
	// failure policy (rows C3, C5 to C10, C12, C13).
	Denies bool
}

func (e *AnswerError) Error() string { return e.Reason }

// pointer is where a decoder is in the document, down to the deepest value that
// we have a name for.
type pointer struct {
	names [8]string
	n     int
}

func (p *pointer) push(name string) {
	p.names[p.n] = name
	p.n++
}

func (p *pointer) pop() { p.n-- }

// String returns p as RFC 6901 spells it.
func (p *pointer) String() string {
	var b strings.Builder
	for _, name := range p.names[:p.n] {
		b.WriteByte('/')
		b.WriteString(name)
	}
	return b.String()
}

// maxQuotedKey is the length of the longest key that a pointer quotes: that of
// a label.
const maxQuotedKey = 253 + 1 + 63

// member returns the pointer to the member name, which is one of ours.
func (p *pointer) member(name string) string { return p.String() + "/" + name }

// quoted returns what goes behind a pointer for a key that the sender made up. One
// that no honest client sends is not quoted.
func quoted(key []byte) string {
	if len(key) > maxQuotedKey {
		return ""
	}
	for _, r := range string(key) {
		if !unicode.IsPrint(r) {
			return ""
		}
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(key))
}
