// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch applies RFC 6902 patches to raw JSON with the semantics of
// gopkg.in/evanphx/json-patch.v4, the implementation in kube-apiserver, and
// with limits against patch bombs.
//
// What this package accepts, v4 accepts with the same result. It is stricter in
// what JSON readers disagree about: duplicate keys in an object that a pointer
// goes through or a test compares, duplicate or case-variant keys in an
// operation, and invalid UTF-8 are errors. So is a null that a patch has added
// and then copied, which v4 takes for an empty object from there on.
//
// The habits of v4 that RFC 6902 does not know, all of them kept: the root can
// be replaced and tested but not added, removed, copied or moved; replacing a
// missing member adds it; copying one copies null; testing one for null
// passes; negative indices count from the end; what stands before the first
// slash of a pointer is ignored; an operation without a value has the value
// null; test compares numbers and strings by their spelling; an array that
// holds null equals nothing.
package jsonpatch

import (
	"strings"
	"unicode/utf8"
)

// Patch is a decoded patch. It borrows nothing and may be applied any number of
// times, also concurrently.
type Patch struct {
	operations []operation
	bytes      int
	explicit   bool
}

// Explicit returns p as if it had not been read: a null is a value then. To test for one
// fails where there is nothing, or null as it was given, and passes where p has added one.
// So it is where kube-apiserver applies what a policy makes, which nobody has written as
// JSON.
func (p Patch) Explicit() Patch {
	p.explicit = true
	return p
}

// Decode reads a JSON array of operations, or null for an empty patch. It
// refuses what cannot be read as one and what exceeds the limits; an operation
// that is unknown or lacks a field fails in Apply, as in v4. The error is an
// *Error.
func Decode(raw []byte, limits Limits) (Patch, error) {
	if limits.PatchBytes > 0 && len(raw) > limits.PatchBytes {
		return Patch{}, documentError(limitf("the patch has more than %d bytes", limits.PatchBytes))
	}
	if !utf8.Valid(raw) {
		return Patch{}, documentError(reason("the patch is not valid UTF-8"))
	}
	return decode(string(raw), limits)
}

func decode(text string, limits Limits) (Patch, error) {
	patch := Patch{bytes: len(text)}
	if strings.Trim(text, space) == null {
		return patch, nil
	}
	err := readArray(text, func(start, end, _ int) error {
		index := len(patch.operations)
		if limits.Operations > 0 && index == limits.Operations {
			return limitf("the patch has more than %d operations", limits.Operations)
		}
		var op operation
		if err := op.decode(text[start:end], limits.Depth); err != nil {
			return operationError(index, &op, err)
		}
		patch.operations = append(patch.operations, op)
		return nil
	})
	if err != nil {
		return Patch{}, documentError(err)
	}
	return patch, nil
}

// Len returns the number of operations.
func (p Patch) Len() int { return len(p.operations) }
