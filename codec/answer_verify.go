// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// Compatibility says how strictly an answer is read.
type Compatibility uint8

const (
	// Strict refuses what different readers could read differently.
	Strict Compatibility = iota
	// APIServer reads an answer as kube-apiserver does: the rows marked + in
	// docs/contract.md do not apply.
	APIServer
)

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
	a.read()
	if err := a.verify(); err != nil {
		return Response{}, err
	}
	resp := Response{Allowed: a.verdict, Patch: a.operations()}
	if !a.verdict {
		a.explain(&resp)
	}
	resp.Warnings = a.cleanWarnings()
	resp.Annotations, resp.DroppedAnnotations = a.cleanAnnotations()
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

// verify returns the AnswerError of the first clause that has an effect, or nil.
func (a *answer) verify() error {
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

// The defects, in the order of the table.

// onlyVariant: a reader that ignores case sees a verdict where kube-apiserver sees
// none.
func (a *answer) onlyVariant() string {
	switch {
	case a.response.onlyVariant():
		return "the answer has only a case variant of the key response"
	case a.allowed.onlyVariant():
		return "the answer has only a case variant of the key allowed"
	}
	return ""
}

// otherKind: the answer names another kind or version, which kube-apiserver cannot
// decode.
func (a *answer) otherKind() string {
	kind, version, ok := a.interpreted()
	if !ok || len(kind) > 0 && string(kind) != reviewKind || !isVersion(version, a.want.Version) {
		return a.expectedKind()
	}
	return ""
}

// isVersion reports whether kube-apiserver takes apiVersion for v, or for none.
func isVersion(apiVersion []byte, v Version) bool {
	switch string(apiVersion) {
	case "", "/", "admission.k8s.io/", v.APIVersion():
		return true
	}
	return false
}

func (a *answer) expectedKind() string {
	return fmt.Sprintf("expected webhook response of %s, Kind=AdmissionReview, got another", a.want.Version.APIVersion())
}

func (a *answer) notBase64() string {
	return because(a.badBase64, "response.patch is not base64")
}

func (a *answer) noResponse() string {
	return because(!a.response.exact || a.absent, "webhook response was absent")
}

func (a *answer) otherUID() string {
	if string(a.uid) != string(a.want.UID) {
		return fmt.Sprintf("expected response.uid=%q, got another", a.want.UID)
	}
	return ""
}

// unnamed: an answer in JSON does not say what it is.
func (a *answer) unnamed() string {
	if a.protobuf || a.isNamed() {
		return ""
	}
	return a.expectedKind()
}

// unnamedEnvelope: in protobuf the type is in the envelope; kube-apiserver takes one
// that is absent there for the expected one.
func (a *answer) unnamedEnvelope() string {
	if !a.protobuf || a.isNamed() {
		return ""
	}
	return a.expectedKind()
}

func (a *answer) isNamed() bool {
	return string(a.kind) == reviewKind && string(a.apiVersion) == a.want.Version.APIVersion()
}

func (a *answer) unwantedPatch() string {
	return because(len(a.patch.bytes) > 0, "validating webhook may not return response.patch")
}

func (a *answer) unwantedType() string {
	return because(a.patchType != nil, "validating webhook may not return response.patchType")
}

func (a *answer) patchWithoutType() string {
	return because(len(a.patch.bytes) > 0 && a.patchType == nil, "webhook returned response.patch but not response.patchType")
}

func (a *answer) typeWithoutPatch() string {
	switch {
	case a.patchType == nil:
	case len(a.patch.bytes) == 0:
		return "webhook returned response.patchType but not response.patch"
	case len(a.patchType) == 0:
		return "webhook returned an empty response.patchType"
	}
	return ""
}

func (a *answer) undecodableOperations() string {
	return because(a.decodedPatch().undecodable, "response.patch is not a JSON array of objects")
}

// unsupportedType: the type matters where there is something to apply.
func (a *answer) unsupportedType() string {
	return because(string(a.patchType) != "JSONPatch" && a.decodedPatch().operations > 0, "webhook returned an unsupported response.patchType")
}

// because returns the reason if there is a defect.
func because(defect bool, reason string) string {
	if defect {
		return reason
	}
	return ""
}

// MentionsDenial reports whether text, which need not be a whole answer, has a
// member `allowed` that is false. An escaped quote, as in a message that quotes an
// answer, makes none.
func MentionsDenial(text []byte) bool {
	for {
		i := bytes.Index(text, []byte("llowed"))
		if i < 0 {
			return false
		}
		rest := text[i+len("llowed"):]
		if i > 0 && text[i-1]|0x20 == 'a' && isFalse(rest) {
			return true
		}
		text = rest
	}
}

// isFalse reports whether what follows a key, with its closing quote if it has
// one, makes it false.
func isFalse(rest []byte) bool {
	if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		rest = rest[1:]
	}
	rest, ok := bytes.CutPrefix(trimSpace(rest), []byte(":"))
	rest = trimSpace(rest)
	return ok && len(rest) >= len("false") && bytes.EqualFold(rest[:len("false")], []byte("false"))
}

// trimSpace cuts leading white space, of which a peer could send megabytes, but
// not between a key and its value.
func trimSpace(text []byte) []byte {
	const most = 1024
	n := 0
	for n < len(text) && n < most && json.IsSpace(text[n]) {
		n++
	}
	return text[n:]
}
