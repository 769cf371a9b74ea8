// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// Message is one protocol's side of one call: what is sent, and what a reply to it
// means. It has a first wording, which may be one that the Target has said that it
// reads, and perhaps a plain one, which the Target reads in any case. It is safe for
// concurrent use.
type Message interface {
	// Retain and Release count who may still send the Message: a call has one
	// reference until none of its attempts needs it any more.
	Retain()
	Release()
	// Len is the number of bytes of the body in the first wording.
	Len() int
	// Payload returns a wording, valid as long as a reference is held.
	Payload(plain bool) (Payload, error)
	// Judge says what a reply means. It may keep nothing of the reply.
	Judge(reply Reply) Judgment
	// IsNegotiated reports whether as of now a call that fails in the first wording
	// may fail because of it, so that the plain one is worth an attempt.
	IsNegotiated(now time.Time) bool
	// Learn is notified of what a call has found out about the first wording. It
	// returns what follows for the calls to come, if that is anything new.
	Learn(l Lesson, now time.Time) *Switch
}

// Payload is a request without what is the same in all protocols.
type Payload struct {
	Fields string // header fields, each with its line break
	Body   []byte
}

// Judgment is what a reply means.
type Judgment struct {
	Response codec.Response
	// Err says that there is no usable answer: a *hook.CallError, or an error of the
	// protocol where the answer is defective and denies all the same.
	Err error
	// Doubtful: the server perhaps does not read the wording that it was sent.
	Doubtful bool
	Switch   *Switch // what the reply says that the Target reads, if that is new
}

// Lesson is what a call has found out about the first wording. The set is closed.
type Lesson uint8

// The lessons.
const (
	// Read: the first wording was answered.
	Read Lesson = iota + 1
	// Misread: it was not, and the plain one was, or there was no attempt in it.
	Misread
	// Blameless: the plain wording fails as well.
	Blameless
)

// Switch is a change of the wording in which a Target is called.
type Switch struct {
	Owner  hook.ID // of the Call that brought it about
	Target *Target
	Reads  string // what the Target is sent as of now, in words
	Err    error  // why that is plainer than before; nil: it is not
}
