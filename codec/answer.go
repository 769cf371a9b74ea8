// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// answer is what a webhook's answer says. It borrows from the body and from its
// own scratch.
type answer struct {
	textScanner
	encoding Encoding
	compat   Compatibility
	defect   string // the first one that is not of syntax

	apiVersion, kind  []byte
	response, allowed spelling
	absent            bool // the response is null
	saysFalse         bool // any copy of allowed, in any spelling, is false
	reply
	cause      cause // the one being read
	annotation Label // likewise
}

// reply is the response.
type reply struct {
	verdict               bool // the last copy of allowed
	uid, patch, patchType []byte
	status                status
	warnings              [][]byte // not empty, at most maxWarnings
	annotations           []Label
}

// spelling tells in which spellings a key came.
type spelling struct{ exact, variant bool }

func (s *spelling) note(variant bool) {
	s.exact = s.exact || !variant
	s.variant = s.variant || variant
}

// onlyVariant reports whether only a reader that ignores case sees the key.
func (s spelling) onlyVariant() bool { return s.variant && !s.exact }

// status is what we read of the metav1.Status.
type status struct {
	code, retryAfterSeconds int32
	reason, message         []byte
	causes                  []cause // at most maxCauses
}

type cause struct{ reason, message, field []byte }

var answers = sync.Pool{New: func() any { return new(answer) }}

// What a pooled answer keeps: room for every reasonable one.
const (
	maxPooledAnnotations   = 128
	maxPooledAnswerScratch = 16 << 10
)

func acquireAnswer(body []byte, want *Expectation) *answer {
	a := answers.Get().(*answer)
	a.data, a.encoding, a.compat, a.lenient = body, want.Encoding, want.Compat, want.Compat == APIServer
	return a
}

func (a *answer) release() {
	a.scanner.release()
	a.scratch = emptied(a.scratch, maxPooledAnswerScratch)
	a.defect, a.apiVersion, a.kind, a.cause = "", nil, nil, cause{}
	a.annotation = Label{}
	a.response, a.allowed, a.absent, a.saysFalse = spelling{}, spelling{}, false, false
	a.reset()
	answers.Put(a)
}

// reset empties r, keeping memory for the next one.
func (r *reply) reset() {
	*r = reply{
		status:      status{causes: emptied(r.status.causes, maxCauses)},
		warnings:    emptied(r.warnings, maxWarnings),
		annotations: emptied(r.annotations, maxPooledAnnotations),
	}
}

// read reads the whole answer. It fails if that is not in its encoding.
func (a *answer) read() bool {
	if a.encoding == JSON {
		return a.readJSON()
	}
	return a.readProtobuf()
}

// unreadable says why read failed. It quotes no input.
func (a *answer) unreadable() string {
	if a.encoding == JSON {
		return a.syntaxError()
	}
	return "not Kubernetes' protobuf: " + a.fault
}

func (a *answer) readJSON() bool {
	if !utf8.Valid(a.data) {
		if !a.lenient {
			return a.fail(invalidUTF8(a.data), faultUTF8)
		}
		a.data = bytes.ToValidUTF8(a.data, []byte("\uFFFD"))
	}
	return a.readObject("the answer", &answerFields) && a.end()
}

// members reads the object at pos. A field that occurs twice or under another
// spelling is a defect, but read all the same: it may deny.
func (a *answer) members(t *table[*answer]) bool {
	if !a.enter() {
		return false
	}
	var seen uint32
	expected, first := 0, true
	for ; a.more(first, '}'); first = false {
		key, ok := a.key()
		if !ok {
			return false
		}
		i := t.find(key, expected)
		variant := false
		if i < 0 && a.compat == Strict {
			i = t.variant(key)
			variant = i >= 0
		}
		if i < 0 {
			if !a.skip() {
				return false
			}
			continue
		}
		a.noteKey(t.fields[i].name, variant, seen&(1<<i) != 0)
		seen |= 1 << i
		expected = i + 1
		if !t.fields[i].read(a) {
			return false
		}
	}
	return a.fault == ""
}

// noteKey records how the key of the field name came.
func (a *answer) noteKey(name string, variant, again bool) {
	switch name {
	case "allowed":
		a.allowed.note(variant)
	case "response":
		a.response.note(variant)
	}
	switch {
	case a.compat == APIServer:
	case variant:
		a.found("the answer has a case variant of the key " + name)
	case again:
		a.found("the answer has the key " + name + " twice")
	}
}

// found records a defect.
func (a *answer) found(defect string) {
	if a.defect == "" {
		a.defect = defect
	}
}

// wrongType records that the value of name is not what it must be, and skips it.
func (a *answer) wrongType(name, must string) bool {
	a.found(name + " must be " + must)
	return a.skip()
}
