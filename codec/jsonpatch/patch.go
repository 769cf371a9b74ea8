// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch applies RFC 6902 patches to raw JSON with the semantics of
// gopkg.in/evanphx/json-patch.v4, the implementation in kube-apiserver, and
// with limits against patch bombs.
package jsonpatch

import "time"

// Limits bound what a patch may cost. A zero field is no limit.
type Limits struct {
	Operations int           // number of operations
	PatchBytes int           // size of the patch document
	CopyBytes  int           // bytes copied by all copy operations together
	Depth      int           // reference tokens in one pointer
	Result     int           // size of the patched document
	Time       time.Duration // from the start of Apply
}

// Patch is a decoded patch. It borrows from the bytes that it was decoded from.
type Patch struct{}

// Decode reads a JSON array of operations, or null for an empty patch.
func Decode(raw []byte, limits Limits) (Patch, error) { panic("stub") }

// Len returns the number of operations.
func (p Patch) Len() int { panic("stub") }

// Apply returns doc, which must be valid JSON, with the operations applied one
// after the other, in memory of its own. doc is not written to.
func (p Patch) Apply(doc []byte, limits Limits) ([]byte, error) { panic("stub") }

// Concat appends the operations of the non-empty JSON array ops to the JSON
// array dst (which may be empty) and returns the array of both.
func Concat(dst, ops []byte) []byte { panic("stub") }
