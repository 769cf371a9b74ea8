// SPDX-License-Identifier: Apache-2.0

package codec

// Compatibility says how strictly an answer is read.
type Compatibility uint8

const (
	// Strict refuses what different readers could read differently.
	Strict Compatibility = iota
	// APIServer reads an answer as kube-apiserver does: the rows marked + in
	// docs/contract.md do not apply.
	APIServer
)

// Compatibilities are all of them, as a WebhookBinding spells them.
var Compatibilities = [...]string{Strict: "Strict", APIServer: "APIServer"}

// Expectation is what an answer must fit to be one to the call at hand.
type Expectation struct {
	UID      []byte // borrowed for the duration of the call
	Version  Version
	Mutating bool
	Compat   Compatibility
}

// Verify reads the body of an answer: JSON, YAML or Kubernetes' protobuf, which
// its first bytes tell, as they do for kube-apiserver. It fails with an
// *AnswerError (rows C1 to C28 of docs/contract.md). The Response is cleaned:
// codes, texts, warnings and annotations are within the limits of one webhook. It
// borrows nothing from body.
func Verify(body []byte, want Expectation) (Response, error) {
	a := acquireAnswer(body, want)
	defer a.release()
	readAnswer(a)
	if err := verify(a); err != nil {
		return Response{}, err
	}
	resp := a.clean(want.Compat, maxWarning)
	if a.verdict && want.Mutating && a.patch.counted(&a.Scanner).operations > 0 {
		resp.Patch = a.patch.bytes
	}
	return resp, nil
}

// The contract of an answer's content (docs/contract.md, part C) is a table of clauses.

// clause says of the answers to a kind of call what can be wrong with them, and what
// that does to one, by compatibility.
type clause struct {
	version Version // asked for; 0: any
	phase   phase
	strict  effect
	server  effect // APIServer
	// defect says what is wrong, or "". It quotes nothing of the answer: it goes into
	// logs.
	defect func(*answer) string
}

// phase is what a webhook is asked for.
type phase uint8

const (
	either phase = iota
	validating
	mutating
)

// effect is what a defect does to the answer that has it: does the call fail, and does
// a denial survive?
type effect uint8

const (
	// accepted: nothing; the answer is read as if the defect were not there.
	accepted effect = iota
	// failsCall: there is no usable answer, whatever it says.
	failsCall
	// keepsFalse: the call fails, unless `allowed` is plainly false: a denial is
	// not lost to a formality.
	keepsFalse
	// keepsDenial: likewise, and an absent or null `allowed` is a denial too. It is
	// for what kube-apiserver accepts, which then denies.
	keepsDenial
	// failsAllow: the call of an allow fails. A denial stands as it is.
	failsAllow
	// denies: a Refusal, whatever the answer says.
	denies
)

// contract is all of it, in the order in which it is checked: first what
// kube-apiserver takes for a failed call, in its order; last what it accepts. The first
// clause that has an effect decides.
var contract = [...]clause{
	// The decoder. Without a whole document nothing further is known.
	{0, either, keepsFalse, failsCall, func(a *answer) string { return a.unreadable }}, // C9
	{0, either, denies, accepted, (*answer).onlyVariant},                               // C6
	{0, either, keepsFalse, failsCall, func(a *answer) string { return a.badType }},    // C7
	{0, either, keepsFalse, failsCall, (*answer).otherKind},                            // C2, C3, C28
	{0, validating, keepsDenial, failsCall, (*answer).notBase64},                       // C13
	{0, mutating, failsAllow, failsCall, (*answer).notBase64},                          // C14, C20

	// VerifyAdmissionResponse, and what is done before a patch is applied.
	{0, either, keepsFalse, failsCall, (*answer).noResponse},               // C4
	{V1, either, keepsFalse, failsCall, (*answer).otherUID},                // C2, C3
	{V1, either, keepsFalse, failsCall, (*answer).unnamed},                 // C2, C3
	{V1, validating, keepsDenial, failsCall, (*answer).unwantedPatch},      // C13
	{V1, validating, keepsDenial, failsCall, (*answer).unwantedType},       // C13
	{V1, mutating, failsAllow, failsCall, (*answer).patchWithoutType},      // C14, C20
	{V1, mutating, failsAllow, failsCall, (*answer).typeWithoutPatch},      // C14, C20
	{0, mutating, failsAllow, failsAllow, (*answer).undecodableOperations}, // C14, C20
	{V1, mutating, failsAllow, failsAllow, (*answer).unsupportedType},      // C14, C20

	// What kube-apiserver accepts, and another reader might read differently.
	{V1, either, keepsDenial, accepted, (*answer).unnamedEnvelope},                    // C2, C3
	{V1beta1, either, keepsDenial, accepted, (*answer).otherUID},                      // C28
	{V1beta1, either, keepsDenial, accepted, (*answer).unnamed},                       // C28
	{V1beta1, either, keepsDenial, accepted, (*answer).unnamedEnvelope},               // C28
	{V1beta1, validating, keepsDenial, accepted, (*answer).unwantedPatch},             // C28
	{0, either, keepsDenial, accepted, func(a *answer) string { return a.ambiguous }}, // C5, C6, C8, C9
}

// verify returns the AnswerError of the first clause that has an effect on a, or nil.
func verify(a *answer) error {
	for i := range contract {
		c := &contract[i]
		e := c.strict
		if a.want.Compat == APIServer {
			e = c.server
		}
		if e == accepted || !c.isFor(&a.want) {
			continue
		}
		reason := c.defect(a)
		if reason == "" || e == failsAllow && !a.verdict {
			continue
		}
		return &AnswerError{Reason: reason, Denies: e.denies(a)}
	}
	return nil
}

// isFor reports whether c is about the answer to this call.
func (c *clause) isFor(call *Expectation) bool {
	return (c.version == 0 || c.version == call.Version) && (c.phase == either || (c.phase == mutating) == call.Mutating)
}

// denies reports whether the defective answer a is a denial all the same.
func (e effect) denies(a *answer) bool {
	switch e {
	case denies:
		return true
	case keepsFalse:
		return a.saysFalse
	case keepsDenial:
		return a.saysFalse || a.response.exact && !a.absent && !a.verdict
	}
	return false
}
