// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"unicode/utf8"
)

// The messages of an answer (runtime.Unknown around admission.k8s.io's
// AdmissionReview, metav1.Status in it).
var (
	answerEnvelope = message[protobufAnswer]{
		{1, "typeMeta", wireBytes, false, func(a protobufAnswer, v wireValue) bool { return readMessage(a, v.bytes, answerType) }},
		{2, "raw", wireBytes, false, protobufAnswer.takeRaw},
		{3, "contentEncoding", wireBytes, false, protobufAnswer.takeContent},
		{4, "contentType", wireBytes, false, protobufAnswer.takeContent},
	}
	answerType = message[protobufAnswer]{
		{1, "apiVersion", wireBytes, false, textOf("apiVersion", func(a *answer) *[]byte { return &a.apiVersion })},
		{2, "kind", wireBytes, false, textOf("kind", func(a *answer) *[]byte { return &a.kind })},
	}
	answerReview = message[protobufAnswer]{
		{2, "response", wireBytes, false, protobufAnswer.takeResponse},
	}
	answerResponse = message[protobufAnswer]{
		{1, "uid", wireBytes, false, textOf("response.uid", func(a *answer) *[]byte { return &a.uid })},
		{2, "allowed", wireVarint, false, protobufAnswer.takeAllowed},
		{3, "status", wireBytes, false, func(a protobufAnswer, v wireValue) bool { return readMessage(a, v.bytes, answerStatus) }},
		{4, "patch", wireBytes, false, protobufAnswer.takePatch},
		{5, "patchType", wireBytes, false, textOf("response.patchType", func(a *answer) *[]byte { return &a.patchType })},
		{6, "auditAnnotations", wireBytes, true, protobufAnswer.takeAnnotation},
		{7, "warnings", wireBytes, true, protobufAnswer.takeWarning},
	}
	answerStatus = message[protobufAnswer]{
		{3, "message", wireBytes, false, textOf("status.message", func(a *answer) *[]byte { return &a.status.message })},
		{4, "reason", wireBytes, false, textOf("status.reason", func(a *answer) *[]byte { return &a.status.reason })},
		{5, "details", wireBytes, false, func(a protobufAnswer, v wireValue) bool { return readMessage(a, v.bytes, answerDetails) }},
		{6, "code", wireVarint, false, func(a protobufAnswer, v wireValue) bool { a.status.code = int32(v.number); return true }},
	}
	answerDetails = message[protobufAnswer]{
		{4, "causes", wireBytes, true, protobufAnswer.takeCause},
		{5, "retryAfterSeconds", wireVarint, false, func(a protobufAnswer, v wireValue) bool { a.status.retryAfterSeconds = int32(v.number); return true }},
	}
	answerCause = message[protobufAnswer]{
		{1, "reason", wireBytes, false, textOf("a cause's reason", func(a *answer) *[]byte { return &a.cause.reason })},
		{2, "message", wireBytes, false, textOf("a cause's message", func(a *answer) *[]byte { return &a.cause.message })},
		{3, "field", wireBytes, false, textOf("a cause's field", func(a *answer) *[]byte { return &a.cause.field })},
	}
	answerAnnotation = message[protobufAnswer]{
		{1, "key", wireBytes, false, textOf("the key of an audit annotation", func(a *answer) *[]byte { return &a.annotation.Key })},
		{2, "value", wireBytes, false, textOf("an audit annotation", func(a *answer) *[]byte { return &a.annotation.Value })},
	}
)

// protobufAnswer reads an answer in Kubernetes' protobuf.
type protobufAnswer struct{ *answer }

// read reads the whole answer. It fails if that is not Kubernetes' protobuf. A writer
// may leave out what is false: no allowed is a denial, and as plain as one that is
// written.
func (a protobufAnswer) read() bool {
	a.protobuf = true
	data, ok := bytes.CutPrefix(a.Data, []byte(envelopeMagic))
	if !ok {
		return a.malformed(faultMagic)
	}
	if !readMessage(a, data, answerEnvelope) {
		return false
	}
	a.saysFalse = a.saysFalse || a.response.exact && !a.allowed.exact && a.badType == ""
	return true
}

func (a protobufAnswer) noteField(name string, again bool) bool {
	if again {
		a.readsDifferently("the answer has the key " + name + " twice")
	}
	return true
}

func (a protobufAnswer) mistyped(name string) bool {
	a.found(name + " has the wire type of another field")
	return true
}

func (a protobufAnswer) malformed(fault string) bool {
	a.unreadable = "not Kubernetes' protobuf: " + fault
	return false
}

// textOf returns what reads the string dst, whose name is for messages.
func textOf(name string, dst func(*answer) *[]byte) func(protobufAnswer, wireValue) bool {
	return func(a protobufAnswer, v wireValue) bool {
		*dst(a.answer) = a.validText(name, v.bytes)
		return true
	}
}

// validText returns text, which must be UTF-8; generated readers do not look.
func (a protobufAnswer) validText(name string, text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	a.readsDifferently(name + " is not UTF-8")
	return bytes.ToValidUTF8(text, []byte("\uFFFD"))
}

// takeRaw reads the AdmissionReview, in place of an earlier one.
func (a protobufAnswer) takeRaw(v wireValue) bool {
	a.reply.reset()
	a.response, a.allowed = spelling{}, spelling{}
	return readMessage(a, v.bytes, answerReview)
}

// takeContent: the content of the envelope is protobuf and nothing else.
func (a protobufAnswer) takeContent(v wireValue) bool {
	if len(v.bytes) > 0 && string(v.bytes) != MediaTypeProtobuf {
		a.readsDifferently("the answer's envelope is around something else than protobuf")
	}
	return true
}

func (a protobufAnswer) takeResponse(v wireValue) bool {
	a.response.note(false)
	return readMessage(a, v.bytes, answerResponse)
}

func (a protobufAnswer) takeAllowed(v wireValue) bool {
	a.allowed.note(false)
	a.verdict = v.number != 0
	switch {
	case v.number == 0:
		a.saysFalse = true
	case v.number > 1:
		a.readsDifferently("response.allowed must be true or false")
	}
	return true
}

// takePatch takes the operations, which are not base64 here.
func (a protobufAnswer) takePatch(v wireValue) bool {
	a.patch = patch{bytes: append([]byte(nil), v.bytes...)}
	return true
}

func (a protobufAnswer) takeCause(v wireValue) bool {
	a.cause = cause{}
	ok := readMessage(a, v.bytes, answerCause)
	if len(a.status.causes) < maxCauses {
		a.status.causes = append(a.status.causes, a.cause)
	}
	return ok
}

func (a protobufAnswer) takeWarning(v wireValue) bool {
	if warning := a.validText("a warning", v.bytes); len(warning) > 0 && len(a.warnings) < maxWarnings {
		a.warnings = append(a.warnings, warning)
	}
	return true
}

func (a protobufAnswer) takeAnnotation(v wireValue) bool {
	a.annotation = Label{}
	ok := readMessage(a, v.bytes, answerAnnotation)
	a.annotate(a.annotation)
	return ok
}
