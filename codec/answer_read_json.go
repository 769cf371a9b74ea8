// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// jsonAnswer reads an answer in JSON.
type jsonAnswer struct{ *answer }

// read reads the whole answer. It fails if that is not JSON.
func (a jsonAnswer) read() bool {
	if !utf8.Valid(a.Data) {
		a.ambiguous = "the answer is not UTF-8"
		a.Data = bytes.ToValidUTF8(a.Data, []byte("\uFFFD"))
	}
	ok := lenientObject(&a.lenient, a, "the answer", &answerFields) && a.End()
	if a.Halved {
		a.readsDifferently("the answer has a surrogate escape without its other half")
	}
	if !ok {
		a.unreadable = a.SyntaxError()
	}
	return ok
}

// What is read of an answer. Everything else that kube-apiserver decodes is
// checked by its shape.
var (
	answerFields = table[jsonAnswer]{
		fields: []field[jsonAnswer]{
			{"kind", func(a jsonAnswer) bool { return a.readText("kind", &a.kind) }, jsonAnswer.foldName},
			{"apiVersion", func(a jsonAnswer) bool { return a.readText("apiVersion", &a.apiVersion) }, jsonAnswer.foldName},
			{"request", shaped(&requestShape), nil},
			{"response", jsonAnswer.readResponse, jsonAnswer.foldResponse},
		},
	}
	responseFields = table[jsonAnswer]{
		fields: []field[jsonAnswer]{
			{"uid", func(a jsonAnswer) bool { return a.readText("response.uid", &a.uid) }, nil},
			{"allowed", jsonAnswer.readAllowed, jsonAnswer.foldAllowed},
			{"status", jsonAnswer.readStatus, nil},
			{"patch", jsonAnswer.readPatch, nil},
			{"patchType", func(a jsonAnswer) bool { return a.readPointer("response.patchType", &a.patchType) }, nil},
			{"auditAnnotations", jsonAnswer.readAnnotations, nil},
			{"warnings", jsonAnswer.readWarnings, nil},
		},
	}
	statusFields = table[jsonAnswer]{
		fields: []field[jsonAnswer]{
			{"kind", shaped(texts("status.kind")), nil},
			{"apiVersion", shaped(texts("status.apiVersion")), nil},
			{"metadata", shaped(&metadataShape), nil},
			{"status", shaped(texts("status.status")), nil},
			{"message", func(a jsonAnswer) bool { return a.readText("status.message", &a.status.message) }, nil},
			{"reason", func(a jsonAnswer) bool { return a.readText("status.reason", &a.status.reason) }, nil},
			{"details", func(a jsonAnswer) bool { return lenientObject(&a.lenient, a, "status.details", &detailsFields) }, nil},
			{"code", func(a jsonAnswer) bool { return a.readInteger("status.code", &a.status.code) }, nil},
		},
	}
	detailsFields = table[jsonAnswer]{
		fields: []field[jsonAnswer]{
			{"name", shaped(texts("status.details.name")), nil},
			{"group", shaped(texts("status.details.group")), nil},
			{"kind", shaped(texts("status.details.kind")), nil},
			{"uid", shaped(texts("status.details.uid")), nil},
			{"causes", jsonAnswer.readCauses, nil},
			{"retryAfterSeconds", func(a jsonAnswer) bool {
				return a.readInteger("status.details.retryAfterSeconds", &a.status.retryAfterSeconds)
			}, nil},
		},
	}
	causeFields = table[jsonAnswer]{
		fields: []field[jsonAnswer]{
			{"reason", func(a jsonAnswer) bool { return a.readText("a cause's reason", &a.cause.reason) }, nil},
			{"message", func(a jsonAnswer) bool { return a.readText("a cause's message", &a.cause.message) }, nil},
			{"field", func(a jsonAnswer) bool { return a.readText("a cause's field", &a.cause.field) }, nil},
		},
	}
)

// Of a case variant all that matters is whether it denies, or may name another kind.

func (a jsonAnswer) foldName([]byte) { a.folded = a.Data }

func (a jsonAnswer) foldResponse(value []byte) {
	a.response.note(true)
	a.saysFalse = a.saysFalse || MentionsDenial(value)
}

func (a jsonAnswer) foldAllowed(value []byte) {
	a.allowed.note(true)
	a.saysFalse = a.saysFalse || string(value) == "false"
}

// readResponse reads the response. In kube-apiserver's reading a second one is
// merged into the first, and a null takes that back.
func (a jsonAnswer) readResponse() bool {
	a.response.note(false)
	if a.absent = a.Next() == 'n'; a.absent {
		a.reply.reset()
	}
	return lenientObject(&a.lenient, a, "response", &responseFields)
}

func (a jsonAnswer) readAllowed() bool {
	a.allowed.note(false)
	switch a.Next() {
	case 't':
		a.verdict = true
	case 'f':
		a.verdict, a.saysFalse = false, true
	case 'n':
	default:
		return a.wrongType("response.allowed", "true or false")
	}
	return a.Skip()
}

func (a jsonAnswer) readStatus() bool {
	if a.Next() == 'n' {
		a.status = status{causes: a.status.causes[:0]}
	}
	return lenientObject(&a.lenient, a, "response.status", &statusFields)
}

// readPointer reads a string that null unsets.
func (a jsonAnswer) readPointer(name string, dst *[]byte) bool {
	if a.Next() == 'n' {
		*dst = nil
	}
	return a.readText(name, dst)
}

func (a jsonAnswer) readCauses() bool {
	a.status.causes = a.status.causes[:0]
	return a.elements("status.details.causes", "an array of objects", func() bool {
		a.cause = cause{}
		ok := lenientObject(&a.lenient, a, "a cause", &causeFields)
		if len(a.status.causes) < maxCauses {
			a.status.causes = append(a.status.causes, a.cause)
		}
		return ok
	})
}

func (a jsonAnswer) readWarnings() bool {
	a.warnings = a.warnings[:0]
	return a.elements("response.warnings", "an array of strings", func() bool {
		var warning []byte
		ok := a.readText("a warning", &warning)
		if len(warning) > 0 && len(a.warnings) < maxWarnings {
			a.warnings = append(a.warnings, warning)
		}
		return ok
	})
}

// readPatch reads the patch, which is base64 in JSON; Go's decoders take an array
// of bytes as well.
func (a jsonAnswer) readPatch() bool {
	switch a.Next() {
	case 'n':
		a.patch = patch{}
		return a.Skip()
	case '[':
		a.patch = patch{bytes: []byte{}}
		return a.elements("response.patch", "", a.readPatchByte)
	}
	var text []byte
	if !a.readText("response.patch", &text) {
		return false
	}
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	a.patch = patch{bytes: decoded}
	a.badBase64 = a.badBase64 || err != nil
	return true
}

func (a jsonAnswer) readPatchByte() bool {
	a.Next()
	start := a.Pos
	if !a.Skip() {
		return false
	}
	b, err := strconv.ParseUint(string(a.Data[start:a.Pos]), 10, 8)
	if err != nil && a.Data[start] != 'n' {
		a.found("response.patch must be base64")
	}
	a.patch.bytes = append(a.patch.bytes, byte(b))
	return true
}

func (a jsonAnswer) readAnnotations() bool {
	switch a.Next() {
	case '{':
	case 'n':
		a.annotations, a.dropped = a.annotations[:0], 0
		return a.Skip()
	default:
		return a.wrongType("response.auditAnnotations", "a map of strings")
	}
	return a.Each(func(key []byte) bool {
		var value []byte
		ok := a.readText("an audit annotation", &value)
		a.annotate(Label{key, value})
		return ok
	})
}
