// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// patch is the patch of an answer.
type patch struct {
	bytes       []byte // JSON, owned by the patch
	counted     bool   // what follows is known
	operations  int
	undecodable bool
}

// readPatch reads the patch, which is base64 in JSON; Go's decoders take an array
// of bytes as well.
func (a *answer) readPatch() bool {
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

func (a *answer) readPatchByte() bool {
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

// operations returns the operations of an allow in order, nil if there are none.
// The patch of a denial is dropped, whatever it is. They are owned by the caller.
func (a *answer) operations() []byte {
	if !a.want.Mutating || !a.verdict {
		return nil
	}
	if a.decodedPatch().operations == 0 {
		return nil
	}
	return a.patch.bytes
}

// decodedPatch returns the patch with its operations counted.
func (a *answer) decodedPatch() *patch {
	if p := &a.patch; !p.counted {
		n, ok := a.countOperations(p.bytes)
		p.counted, p.operations, p.undecodable = true, n, !ok
	}
	return &a.patch
}

// countOperations returns the number of operations in the JSON array text, for
// which null is empty, as nothing is. A null among them is one, which does not
// apply. It reuses the scanner of the answer, which is done.
func (a *answer) countOperations(text []byte) (n int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	s := &a.Scanner
	s.Reset(text)
	if !utf8.Valid(text) {
		return 0, false
	}
	switch s.Next() {
	case '[':
	case 'n':
		return 0, s.Skip() && s.End()
	default:
		return 0, false
	}
	if !s.Enter() {
		return 0, false
	}
	for s.More(n == 0, ']') {
		if c := s.Next(); c != '{' && c != 'n' || !s.Skip() {
			return 0, false
		}
		n++
	}
	return n, s.Fault == "" && s.End()
}
