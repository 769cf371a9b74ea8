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

// effect is what a defect does to the answer that has it.
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

// defect is a row of the table: what can be wrong with an answer, and what that
// does to it.
type defect struct {
	version Version // of the answers that can have it; 0: both
	// of says what is wrong, or "". It quotes nothing of the answer: it goes into
	// logs.
	of                func(*answer) string
	strict, apiServer effect // by compatibility
}

// defects is the whole contract of an answer's content, in the order in which it
// is checked: first what kube-apiserver takes for a failed call, in its order;
// last what it accepts. The first defect that has an effect decides.
var defects = [...]defect{
	// The decoder. Without a whole document nothing further is known.
	{0, (*answer).syntaxDefect, keepsFalse, failsCall},            // C9
	{0, (*answer).variantDefect, denies, accepted},                // C6
	{0, (*answer).typeDefect, keepsFalse, failsCall},              // C7
	{0, (*answer).otherKindDefect, keepsFalse, failsCall},         // C2, C3, C28
	{0, (*answer).validatingBase64Defect, keepsDenial, failsCall}, // C13
	{0, (*answer).base64Defect, failsAllow, failsCall},            // C14, C20

	// VerifyAdmissionResponse, and what is done before a patch is applied.
	{0, (*answer).absenceDefect, keepsFalse, failsCall},           // C4
	{V1, (*answer).uidDefect, keepsFalse, failsCall},              // C2, C3
	{V1, (*answer).kindDefect, keepsFalse, failsCall},             // C2, C3
	{V1, (*answer).validatingPatchDefect, keepsDenial, failsCall}, // C13
	{V1, (*answer).validatingTypeDefect, keepsDenial, failsCall},  // C13
	{V1, (*answer).patchWithoutTypeDefect, failsAllow, failsCall}, // C14, C20
	{V1, (*answer).typeWithoutPatchDefect, failsAllow, failsCall}, // C14, C20
	{0, (*answer).operationsDefect, failsAllow, failsAllow},       // C14, C20
	{V1, (*answer).patchTypeDefect, failsAllow, failsAllow},       // C14, C20

	// What kube-apiserver accepts, and another reader might read differently.
	{V1, (*answer).untypedDefect, keepsDenial, accepted},              // C2, C3
	{V1beta1, (*answer).uidDefect, keepsDenial, accepted},             // C28
	{V1beta1, (*answer).kindDefect, keepsDenial, accepted},            // C28
	{V1beta1, (*answer).untypedDefect, keepsDenial, accepted},         // C28
	{V1beta1, (*answer).validatingPatchDefect, keepsDenial, accepted}, // C28
	{0, (*answer).ambiguity, keepsDenial, accepted},                   // C5, C6, C8, C9
}

// verify returns the AnswerError of the first defect that has an effect, or nil.
func (a *answer) verify() error {
	for i := range defects {
		d := &defects[i]
		e := d.strict
		if a.want.Compat == APIServer {
			e = d.apiServer
		}
		if e == accepted || d.version != 0 && d.version != a.want.Version {
			continue
		}
		reason := d.of(a)
		if reason == "" || e == failsAllow && !a.verdict {
			continue
		}
		return &AnswerError{Reason: reason, Denies: e.denies(a)}
	}
	return nil
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

// syntaxDefect: nobody can read it.
func (a *answer) syntaxDefect() string { return a.unreadable }

// variantDefect: a reader that ignores case sees a verdict where kube-apiserver
// sees none.
func (a *answer) variantDefect() string {
	switch {
	case a.response.onlyVariant():
		return "the answer has only a case variant of the key response"
	case a.allowed.onlyVariant():
		return "the answer has only a case variant of the key allowed"
	}
	return ""
}

func (a *answer) typeDefect() string { return a.badType }

// otherKindDefect: the answer names another kind or version, which kube-apiserver
// cannot decode.
func (a *answer) otherKindDefect() string {
	kind, version := a.interpreted()
	if len(kind) > 0 && string(kind) != reviewKind || !isVersion(version, a.want.Version) {
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

func (a *answer) absenceDefect() string {
	if !a.response.exact || a.absent {
		return "webhook response was absent"
	}
	return ""
}

func (a *answer) uidDefect() string {
	if string(a.uid) != string(a.want.UID) {
		return fmt.Sprintf("expected response.uid=%q, got another", a.want.UID)
	}
	return ""
}

func (a *answer) kindDefect() string {
	if a.protobuf {
		return ""
	}
	return a.namedDefect()
}

// untypedDefect: the type is in the envelope of protobuf; kube-apiserver takes one
// that is absent there for the expected one.
func (a *answer) untypedDefect() string {
	if !a.protobuf {
		return ""
	}
	return a.namedDefect()
}

func (a *answer) namedDefect() string {
	if string(a.kind) != reviewKind || string(a.apiVersion) != a.want.Version.APIVersion() {
		return a.expectedKind()
	}
	return ""
}

func (a *answer) ambiguity() string { return a.ambiguous }
