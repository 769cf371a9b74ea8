// SPDX-License-Identifier: Apache-2.0

// Package hook is what may be asked about an admission, and what comes of it.
package hook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// ID names a Hook: the object that configures it, and its name there.
type ID struct{ Configuration, Name string }

// Hook may be asked about an admission. It is safe for concurrent use.
type Hook interface {
	// Ask answers q: it calls to.Receive once, by q.Deadline, on any goroutine,
	// perhaps before it returns. What it uses of q.View after it has returned it
	// retains. ctx carries shutdown and trace only.
	//
	// The answer comes by itself, or has come, where Ask returns nil: that is right for
	// every Hook. With an Outstanding q is on its way, and nothing more happens until
	// the caller awaits or leaves it. A Hook around a Hook returns what that returned.
	Ask(ctx context.Context, q Question, to Receiver) Outstanding
}

// Outstanding is an answer that its Hook would only wait for, so that who asked may do
// that on its own goroutine. One of Await and Leave must be called, once and soon:
// before that the Receiver is not notified, not even at the Question's Deadline, and
// what the call holds is not given back. It is nobody's any more afterwards.
type Outstanding interface {
	// Due is until when Await waits, at most. Of several the one that is due first is
	// awaited first.
	Due() time.Time
	// Await waits for the answer and notifies the Receiver, on this goroutine. Where
	// that takes more than to read an answer that comes in time, it returns, by Due: the
	// answer comes by itself then, as after Leave.
	Await()
	// Leave has the answer come by itself, by the Question's Deadline. It does not block.
	Leave()
}

// Receiver takes the answer to one Question, the first that is given. It is a value
// that is good for ever: an answer that comes later, be it after the memory of the
// admission has become another's, is dropped.
type Receiver struct {
	asker  Asker
	ticket uint64
}

// NewReceiver returns the Receiver of the Question that asker knows by ticket.
func NewReceiver(asker Asker, ticket uint64) Receiver { return Receiver{asker, ticket} }

// Receive notifies who asked. It does not block. The error is a *CallError, a *Refusal,
// or a *codec.AnswerError whose Denies is set. Nothing of resp is borrowed. The patch of an
// allow beside a *CallError is what there is of the answer without what failed, and is
// applied where failurePolicy Ignore has that left out.
func (r Receiver) Receive(resp codec.Response, err error) { r.asker.Answered(r.ticket, resp, err) }

// Asker takes the answers of Hooks. It is safe for concurrent use.
type Asker interface {
	// Answered takes an answer to the Question of ticket. It must not block, and must
	// drop what is not the first answer to a Question that it waits for.
	Answered(ticket uint64, resp codec.Response, err error)
}

// FailureKey is the key of the audit annotations by which a policy tells of a validation
// that does not hold: one for each, whose value is an object in JSON. They become one
// list of all policies. What a webhook sets under this key is its own.
const FailureKey = "validation.policy.admission.k8s.io/validation_failure"

// Question is one Hook's part of one admission.
type Question struct {
	*View
	Deadline time.Time
	// Timeout is what the Hook would have had if the caller had left it the time. A
	// much earlier Deadline that passes says little about the Hook.
	Timeout time.Duration
	Round   int // 1 for a reinvocation
	// Repeatable: asking more than once has no side effects.
	Repeatable bool
	// Shadow: nobody waits for the answer.
	Shadow bool
	// Wait: no answer denies. A Hook that is known not to answer at present waits for
	// a better time until the Deadline rather than fail at once.
	Wait bool
	// Over is true once nobody needs the answer any more. It may be read until the
	// Receiver is notified. nil: the answer is needed to the end.
	Over *atomic.Bool
}

// Payload returns the review in the form f, made once for all Hooks. It is valid as
// long as the View is. The error is a *CallError.
func (q *Question) Payload(f codec.Form) (*codec.Body, error) { return q.payload(f, !q.Shadow) }

// Undoer is a Hook of the transactional stage that can take back what it did.
type Undoer interface {
	// Undo takes back what Ask did about q, if anything: the admission was denied, was
	// a dry run, or its allow was not delivered. It is called at most once, when that is
	// known, perhaps before Ask has answered, on a goroutine of its own. ctx ends after
	// 3 s, and nobody waits for an Undo any longer; calls of the Hook are shed while too
	// many hang.
	//
	// Delivered is an allow that the dispatcher has written to the socket, whole, before
	// the caller's timeout, of a caller that had not closed the connection by then.
	// Whether the caller has read it, and has stored the object, nobody knows. And a
	// process that is killed calls nothing. So what must be exact is compared with what
	// there is, from time to time.
	Undo(ctx context.Context, q Question)
}

// Explainer is a Hook that tells what it would do, without doing it.
type Explainer interface {
	// Explain says what the Hook would do with the review as it was received. The error,
	// a *CallError, says why it cannot be asked at all.
	Explain(v *View) (Explanation, error)
}

// Explanation is what a Hook would do.
type Explanation struct {
	Payload string // the form in which it would be given the review
	Answer  string // what it would say, if that is known; it may quote the object
	// Steps are how it would come to that, each in a line.
	Steps []string
}

// Located is a Hook that is somewhere else.
type Located interface {
	Where() string // its URL
}
