// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// Limits bound what a patch may cost. A zero field is no limit. Decode looks at
// Operations, PatchBytes and Depth, Open at the times, Apply at CopyBytes and the
// times, Append at Result and Nesting.
type Limits struct {
	Operations int           // number of operations
	PatchBytes int           // size of the patch document, as it is written
	CopyBytes  int           // bytes copied by all copy operations on the Document together, as they are written
	Depth      int           // reference tokens in one pointer
	Result     int           // size of the patched document, escapes counted as what they stand for
	Nesting    int           // depth of the patched document; never above 10,000
	Time       time.Duration // from the start of Open or Apply
	Deadline   time.Time     // of both, if that is earlier
}

// DefaultLimits are the limits for the patch of a webhook. CopyBytes is
// kube-apiserver's own, which counts an escape as it is written too, and Result the size of the largest object it takes.
func DefaultLimits() Limits {
	return Limits{
		Operations: 2000,
		PatchBytes: 1 << 20,
		CopyBytes:  3 << 20,
		Depth:      128,
		Result:     3 << 20,
		Nesting:    json.MaxDepth - 2, // in a review the object is two levels down
		Time:       250 * time.Millisecond,
	}
}

func (l Limits) nesting() int {
	if l.Nesting == 0 {
		return json.MaxDepth
	}
	return min(l.Nesting, json.MaxDepth)
}
