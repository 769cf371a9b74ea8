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
	a.notBase64 = a.notBase64 || err != nil
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

func (a *answer) validatingBase64Defect() string {
	if !a.want.Mutating && a.notBase64 {
		return "response.patch is not base64"
	}
	return ""
}

func (a *answer) base64Defect() string {
	if a.want.Mutating && a.notBase64 {
		return "response.patch is not base64"
	}
	return ""
}

func (a *answer) validatingPatchDefect() string {
	if !a.want.Mutating && len(a.patch.bytes) > 0 {
		return "validating webhook may not return response.patch"
	}
	return ""
}

func (a *answer) validatingTypeDefect() string {
	if !a.want.Mutating && a.patchType != nil {
		return "validating webhook may not return response.patchType"
	}
	return ""
}

func (a *answer) patchWithoutTypeDefect() string {
	if a.want.Mutating && len(a.patch.bytes) > 0 && a.patchType == nil {
		return "webhook returned response.patch but not response.patchType"
	}
	return ""
}

func (a *answer) typeWithoutPatchDefect() string {
	switch {
	case !a.want.Mutating || a.patchType == nil:
	case len(a.patch.bytes) == 0:
		return "webhook returned response.patchType but not response.patch"
	case len(a.patchType) == 0:
		return "webhook returned an empty response.patchType"
	}
	return ""
}

func (a *answer) operationsDefect() string {
	if a.want.Mutating && a.decodedPatch().undecodable {
		return "response.patch is not a JSON array of objects"
	}
	return ""
}

// patchTypeDefect: the type matters where there is something to apply.
func (a *answer) patchTypeDefect() string {
	if !a.want.Mutating || string(a.patchType) == "JSONPatch" {
		return ""
	}
	if a.decodedPatch().operations > 0 {
		return "webhook returned an unsupported response.patchType"
	}
	return ""
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
