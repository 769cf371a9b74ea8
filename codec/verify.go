// SPDX-License-Identifier: Apache-2.0

package codec

import "fmt"

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
	Encoding Encoding // of the answer, as its Content-Type says
	Mutating bool
	Compat   Compatibility
}

// Verify reads the body of a 200 answer. It fails with an *AnswerError
// (answers.md C1 to C29). The Response is cleaned: codes, texts, warnings and
// annotations are within the limits of one webhook. It borrows nothing from body.
func Verify(body []byte, want Expectation) (Response, error) {
	a := acquireAnswer(body, &want)
	defer a.release()
	if !a.read() {
		return Response{}, &AnswerError{Reason: a.unreadable()}
	}
	if defect := a.defectOf(&want); defect != "" {
		return Response{}, a.unusable(defect, a.saysFalse || a.allowed.onlyVariant() || a.response.onlyVariant())
	}
	patch, defect := a.readPatch(&want)
	if defect != "" {
		return Response{}, a.unusable(defect, !a.verdict)
	}
	return a.verified(patch), nil
}

// verified is the cleaned Response of an answer that is in order.
func (a *answer) verified(patch []byte) Response {
	resp := Response{Allowed: a.verdict, Patch: patch}
	if !a.verdict {
		a.explain(&resp)
	}
	resp.Warnings = a.cleanWarnings()
	resp.Annotations, resp.DroppedAnnotations = a.cleanAnnotations()
	return resp
}

// unusable makes an AnswerError. kube-apiserver drops a denial together with the
// answer that it is in.
func (a *answer) unusable(defect string, denies bool) error {
	return &AnswerError{Reason: defect, Denies: denies && a.compat == Strict}
}

// defectOf says why the answer is not one to this call, or "". It quotes nothing
// of the answer: it goes into logs.
func (a *answer) defectOf(want *Expectation) string {
	// kube-apiserver does not miss uid, kind and version of v1beta1.
	checked := want.Version == V1 || a.compat == Strict || a.saysOther(want.Version)
	switch {
	case a.defect != "":
		return a.defect
	case !a.response.exact || a.absent:
		return "webhook response was absent"
	case checked && string(a.uid) != string(want.UID):
		return fmt.Sprintf("expected response.uid=%q, got another", want.UID)
	case checked && (string(a.kind) != "AdmissionReview" || string(a.apiVersion) != want.Version.APIVersion()):
		return fmt.Sprintf("expected webhook response of %s, Kind=AdmissionReview, got another", want.Version.APIVersion())
	}
	return ""
}

// saysOther reports whether the answer names another kind or version, which
// kube-apiserver cannot decode.
func (a *answer) saysOther(v Version) bool {
	return len(a.kind) > 0 && string(a.kind) != "AdmissionReview" || len(a.apiVersion) > 0 && string(a.apiVersion) != v.APIVersion()
}
