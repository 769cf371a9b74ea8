// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strconv"
)

// What is read of an answer. Everything else that kube-apiserver decodes is
// checked by its shape.
var (
	answerFields = table[*answer]{
		fields: []field[*answer]{
			{"kind", func(a *answer) bool { return a.readText("kind", &a.kind) }, (*answer).foldName},
			{"apiVersion", func(a *answer) bool { return a.readText("apiVersion", &a.apiVersion) }, (*answer).foldName},
			{"request", func(a *answer) bool { return a.check(&requestShape) }, nil},
			{"response", (*answer).readResponse, (*answer).foldResponse},
		},
	}
	responseFields = table[*answer]{
		fields: []field[*answer]{
			{"uid", func(a *answer) bool { return a.readText("response.uid", &a.uid) }, nil},
			{"allowed", (*answer).readAllowed, (*answer).foldAllowed},
			{"status", (*answer).readStatus, nil},
			{"patch", (*answer).readPatch, nil},
			{"patchType", func(a *answer) bool { return a.readPointer("response.patchType", &a.patchType) }, nil},
			{"auditAnnotations", (*answer).readAnnotations, nil},
			{"warnings", (*answer).readWarnings, nil},
		},
	}
	statusFields = table[*answer]{
		fields: []field[*answer]{
			{"kind", func(a *answer) bool { return a.check(&statusKindShape) }, nil},
			{"apiVersion", func(a *answer) bool { return a.check(&statusVersionShape) }, nil},
			{"metadata", func(a *answer) bool { return a.check(&metadataShape) }, nil},
			{"status", func(a *answer) bool { return a.check(&statusStatusShape) }, nil},
			{"message", func(a *answer) bool { return a.readText("status.message", &a.status.message) }, nil},
			{"reason", func(a *answer) bool { return a.readText("status.reason", &a.status.reason) }, nil},
			{"details", func(a *answer) bool { return a.readObject("status.details", &detailsFields) }, nil},
			{"code", func(a *answer) bool { return a.readInteger("status.code", &a.status.code) }, nil},
		},
	}
	detailsFields = table[*answer]{
		fields: []field[*answer]{
			{"name", func(a *answer) bool { return a.check(&detailsNameShape) }, nil},
			{"group", func(a *answer) bool { return a.check(&detailsGroupShape) }, nil},
			{"kind", func(a *answer) bool { return a.check(&detailsKindShape) }, nil},
			{"uid", func(a *answer) bool { return a.check(&detailsUIDShape) }, nil},
			{"causes", (*answer).readCauses, nil},
			{"retryAfterSeconds", func(a *answer) bool {
				return a.readInteger("status.details.retryAfterSeconds", &a.status.retryAfterSeconds)
			}, nil},
		},
	}
	causeFields = table[*answer]{
		fields: []field[*answer]{
			{"reason", func(a *answer) bool { return a.readText("a cause's reason", &a.cause.reason) }, nil},
			{"message", func(a *answer) bool { return a.readText("a cause's message", &a.cause.message) }, nil},
			{"field", func(a *answer) bool { return a.readText("a cause's field", &a.cause.field) }, nil},
		},
	}
)

// Of a case variant all that matters is whether it denies, or may name another kind.

func (a *answer) foldName([]byte) { a.folded = true }

func (a *answer) foldResponse(value []byte) {
	a.response.note(true)
	a.saysFalse = a.saysFalse || MentionsDenial(value)
}

func (a *answer) foldAllowed(value []byte) {
	a.allowed.note(true)
	a.saysFalse = a.saysFalse || string(value) == "false"
}

// readResponse reads the response. In kube-apiserver's reading a second one is
// merged into the first, and a null takes that back.
func (a *answer) readResponse() bool {
	a.response.note(false)
	if a.absent = a.Next() == 'n'; a.absent {
		a.reset()
	}
	return a.readObject("response", &responseFields)
}

func (a *answer) readAllowed() bool {
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

func (a *answer) readStatus() bool {
	if a.Next() == 'n' {
		a.status = status{causes: a.status.causes[:0]}
	}
	return a.readObject("response.status", &statusFields)
}

// readPointer reads a string that null unsets.
func (a *answer) readPointer(name string, dst *[]byte) bool {
	if a.Next() == 'n' {
		*dst = nil
	}
	return a.readText(name, dst)
}

func (a *answer) readCauses() bool {
	a.status.causes = a.status.causes[:0]
	return a.elements("status.details.causes", "an array of objects", func() bool {
		a.cause = cause{}
		ok := a.readObject("a cause", &causeFields)
		if len(a.status.causes) < maxCauses {
			a.status.causes = append(a.status.causes, a.cause)
		}
		return ok
	})
}

func (a *answer) readWarnings() bool {
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

func (a *answer) readAnnotations() bool {
	switch a.Next() {
	case '{':
	case 'n':
		a.annotations, a.dropped = a.annotations[:0], 0
		return a.Skip()
	default:
		return a.wrongType("response.auditAnnotations", "a map of strings")
	}
	if !a.Enter() {
		return false
	}
	first := true
	for ; a.More(first, '}'); first = false {
		key, ok := a.Key()
		if !ok {
			return false
		}
		var value []byte
		if !a.readText("an audit annotation", &value) {
			return false
		}
		a.annotate(Label{key, value})
	}
	return a.Fault == ""
}

// readText reads a string into dst. Null leaves it as it was, as in Go's decoders.
func (a *answer) readText(name string, dst *[]byte) (ok bool) {
	switch a.Next() {
	case '"':
		*dst, ok = a.Text()
		return ok
	case 'n':
		return a.Skip()
	}
	return a.wrongType(name, "a string")
}

// readObject reads an object whose members t knows.
func (a *answer) readObject(name string, t *table[*answer]) bool {
	switch a.Next() {
	case '{':
		return a.members(t)
	case 'n':
		return a.Skip()
	}
	return a.wrongType(name, "an object")
}

// readInteger reads an integer into dst, which must hold it, as in Go's decoders.
func (a *answer) readInteger(name string, dst *int32) bool {
	a.Next()
	start := a.Pos
	if !a.Skip() {
		return false
	}
	literal := a.Data[start:a.Pos]
	if string(literal) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(literal), 10, 32)
	if err != nil {
		a.found(name + " must be an integer of 32 bits")
		return true
	}
	*dst = int32(n)
	return true
}

// elements reads an array, or null for an empty one.
func (a *answer) elements(name, must string, read func() bool) bool {
	switch a.Next() {
	case '[':
	case 'n':
		return a.Skip()
	default:
		return a.wrongType(name, must)
	}
	if !a.Enter() {
		return false
	}
	first := true
	for ; a.More(first, ']'); first = false {
		if !read() {
			return false
		}
	}
	return a.Fault == ""
}
