// SPDX-License-Identifier: Apache-2.0

package codec

import (
	stdjson "encoding/json"
	"fmt"
	"sync"
)

// answer is what a webhook's answer says, and what is wrong with how it says it.
// It borrows from the body and from its own scratch.
type answer struct {
	lenient
	findings
	reply
}

// findings are what an answer is about and what was read of it beside the reply: all
// that must not get into the next one.
type findings struct {
	want Expectation

	protobuf   bool
	unreadable string // why there is no whole document

	apiVersion, kind  []byte
	folded            []byte // the document, if kind or apiVersion came in a case variant
	response, allowed spelling
	absent            bool  // the response is null
	badBase64         bool  // any copy of the patch
	saysFalse         bool  // any copy of allowed, in any spelling, is false
	cause             cause // the one being read
	annotation        Label // likewise
}

// spelling tells in which spellings a key came.
type spelling struct{ exact, variant bool }

func (s *spelling) note(variant bool) {
	s.exact = s.exact || !variant
	s.variant = s.variant || variant
}

// onlyVariant reports whether only a reader that ignores case sees the key.
func (s spelling) onlyVariant() bool { return s.variant && !s.exact }

var answers = sync.Pool{New: func() any { return new(answer) }}

// maxPooledAnswerScratch is what a pooled answer keeps: room for every reasonable
// one.
const maxPooledAnswerScratch = 16 << 10

func acquireAnswer(body []byte, want Expectation) *answer {
	a := answers.Get().(*answer)
	a.Reset(body)
	a.want, a.Lenient = want, true
	return a
}

func (a *answer) release() {
	a.Reset(nil)
	a.Scratch = emptied(a.Scratch, maxPooledAnswerScratch)
	a.defects, a.findings = defects{}, findings{}
	a.reset()
	answers.Put(a)
}

// The defects, in the order of the contract (answer_verify.go). Each says what is wrong,
// or "".

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

// interpreted is what kube-apiserver takes for kind and apiVersion as it chooses
// what to decode: there it ignores case. ok: it could be decoded.
func (a *answer) interpreted() (kind, apiVersion []byte, ok bool) {
	if a.folded == nil {
		return a.kind, a.apiVersion, true
	}
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err := stdjson.Unmarshal(a.folded, &meta)
	return []byte(meta.Kind), []byte(meta.APIVersion), err == nil
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
	return because(a.patch.counted(&a.Scanner).undecodable, "response.patch is not a JSON array of objects")
}

// unsupportedType: the type matters where there is something to apply.
func (a *answer) unsupportedType() string {
	return because(string(a.patchType) != "JSONPatch" && a.patch.counted(&a.Scanner).operations > 0, "webhook returned an unsupported response.patchType")
}

// because returns the reason if there is a defect.
func because(defect bool, reason string) string {
	if defect {
		return reason
	}
	return ""
}
